/** Views are tested with their words, which the page loads together with them. */

import { loadLaterWords } from "../src/i18n/catalogue";

await loadLaterWords();
