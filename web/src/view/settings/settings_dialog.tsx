/** What the reader can choose for every conversation, and the way to take it all back. */

import "./settings_dialog.css";

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import type { App } from "../../app";
import { languages, preferred, t, type Language } from "../../i18n/catalogue";
import { isTouch } from "../../input/send_key";
import { themes, type Theme } from "../../settings";
import { getVersion } from "../../wire/service_api";

export function SettingsDialog({ app }: { app: App }) {
  return (
    <div class="settings">
      <LanguageChoice app={app} />
      <ThemeChoice app={app} />
      <EnterChoice app={app} />
      <Erasing app={app} />
      <Version />
    </div>
  );
}

function LanguageChoice({ app: { settings } }: { app: App }) {
  const system = languages[preferred(navigator.languages)];
  return (
    <Choice label={t("settings.language")}>
      <select
        value={settings.language.value ?? ""}
        onChange={({ currentTarget: { value } }) => {
          settings.language.value = value === "" ? null : (value as Language);
        }}
      >
        <option value="">{t("settings.languageSystem", { name: system })}</option>
        {Object.entries(languages).map(([tag, name]) => (
          <option key={tag} value={tag} lang={tag}>
            {name}
          </option>
        ))}
      </select>
    </Choice>
  );
}

function ThemeChoice({ app: { settings } }: { app: App }) {
  return (
    <Choice label={t("settings.theme")}>
      <select
        value={settings.theme.value}
        onChange={(event) => (settings.theme.value = event.currentTarget.value as Theme)}
      >
        {themes.map((theme) => (
          <option key={theme} value={theme}>
            {t(`settings.theme.${theme}`)}
          </option>
        ))}
      </select>
    </Choice>
  );
}

function EnterChoice({ app: { settings } }: { app: App }) {
  return (
    <Choice label={t("settings.enter")}>
      <select
        value={settings.enterSends.value ? "send" : "line"}
        onChange={(event) => (settings.enterSends.value = event.currentTarget.value === "send")}
      >
        <option value="send">{t("settings.enterSends")}</option>
        <option value="line">{t("settings.enterLine")}</option>
      </select>
      {isTouch() && <small>{t("settings.enterTouch")}</small>}
    </Choice>
  );
}

function Choice({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="choice">
      <span>{label}</span>
      {children}
    </label>
  );
}

/** Asks once more, in the same place: there is no way back. */
function Erasing({ app }: { app: App }) {
  const isSure = useSignal(false);
  const press = () => {
    if (!isSure.value) isSure.value = true;
    else void app.belongings.erase();
  };
  return (
    <div class="choice">
      <button type="button" class="outlined danger" onClick={press}>
        {isSure.value ? t("settings.deleteAgain") : t("settings.delete")}
      </button>
      <small>{t("settings.deleteHint")}</small>
    </div>
  );
}

function Version() {
  const version = useSignal<string | null>(null);
  useEffect(() => {
    getVersion().then(
      (known) => (version.value = t("settings.version", { version: known })),
      () => (version.value = t("settings.versionUnknown")),
    );
  }, []);
  return <p class="version">{version.value}</p>;
}
