/** Start the page. */

import "./view/base.css";

import { render } from "preact";

import { App } from "./app";
import { narrowQuery } from "./layout";
import { Settings } from "./settings";
import { workerUrl } from "./trusted_types";
import { markdown } from "./view/answer_text";
import { EmptyState, Page } from "./view/page";

function openSocket(): WebSocket {
  const url = new URL("v1/responses", document.baseURI);
  url.protocol = url.protocol.replace("http", "ws");
  url.hash = "";
  return new WebSocket(url);
}

function keepShell(): void {
  // Absent outside https and localhost; there, as where it is refused, the page needs its server.
  navigator.serviceWorker?.register(workerUrl()).catch(() => undefined);
}

const root = document.getElementById("page");
if (root === null) throw new Error("index.html has no element with the id 'page'");
const settings = new Settings();
const app = new App(openSocket, settings);
app.layout.watch(matchMedia(narrowQuery));
// What the address names is asked for while the page is still being put together.
app.start();
const isNewChat = app.current.value.id.value === null;
const first = isNewChat ? EmptyState.request() : markdown.request();
// A text can be shown before it can be read as Markdown; the place for a new chat is all there is.
void Promise.all([settings.apply(), isNewChat && first]).then(() => {
  render(<Page app={app} />, root);
  keepShell();
});
