/** What the page loads when it is needed is there from the beginning: words, Markdown, HTTP streams. */

import "../src/wire/http_transport";

import { loadLaterWords } from "../src/i18n/catalogue";
import { markdown } from "../src/view/answer_text";

await Promise.all([loadLaterWords(), markdown.request()]);
