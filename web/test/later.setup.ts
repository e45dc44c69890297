/** Views are tested with their words and with Markdown, which the page loads when they are needed. */

import { loadLaterWords } from "../src/i18n/catalogue";
import { markdown } from "../src/view/answer_text";

await Promise.all([loadLaterWords(), markdown.request()]);
