/** What stands in place of the page until a key is shown. */

import "./login_form.css";

import { useEffect, useMemo, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { EnterGuard } from "../input/enter_guard";
import type { Login } from "../login";

export function LoginForm({ login }: { login: Login }) {
  const field = useRef<HTMLInputElement>(null);
  const guard = useMemo(() => new EnterGuard(), []);
  // The title of whatever was open is not for everybody who comes by.
  useEffect(() => {
    document.title = "chatserve";
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    const key = field.current?.value ?? "";
    if (key.trim() !== "" && !login.isBusy.value) void login.logIn(key);
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>chatserve</h1>
        <label for="key">{t("login.key")}</label>
        <input
          id="key"
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          autofocus
          ref={field}
          onKeyDown={(event) => guard.holdBack(event)}
          onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
          aria-describedby={login.problem.value === null ? undefined : "login-problem"}
          aria-invalid={login.problem.value !== null}
        />
        <button type="submit" disabled={login.isBusy.value}>
          {t("login.logIn")}
        </button>
        {login.problem.value !== null && (
          <p class="obstacle" id="login-problem" role="alert">
            {login.problem.value}
          </p>
        )}
        <p class="note">{t("login.note")}</p>
      </form>
    </main>
  );
}
