/**
 * Which side panels and dialogs are open.
 *
 * Owns that and nothing of what they show. On a narrow screen the panels are sheets over the page, of
 * which at most one is open; on a wide one they stand beside it and stay as they are left.
 */

import { computed, signal } from "@preact/signals";

/** The same as in the style sheets. */
export const narrowQuery = "(width < 800px)";

export type DialogName = "settings" | "keys";

export class Layout {
  readonly isNarrow = signal(false);
  readonly dialog = signal<DialogName | null>(null);
  readonly isListShown = computed(() =>
    this.isNarrow.value ? this.#sheet.value === "list" : this.#hasList.value,
  );
  readonly isInspectorShown = computed(() =>
    this.isNarrow.value ? this.#sheet.value === "inspector" : this.#hasInspector.value,
  );
  readonly #hasList = signal(true);
  readonly #hasInspector = signal(false);
  readonly #sheet = signal<"list" | "inspector" | null>(null);

  /** Follow the width of the screen. */
  watch(narrow: Pick<MediaQueryList, "matches" | "addEventListener">): void {
    this.isNarrow.value = narrow.matches;
    narrow.addEventListener("change", () => {
      this.closeSheet();
      this.isNarrow.value = narrow.matches;
    });
  }

  showList(): void {
    if (!this.isListShown.value) this.toggleList();
  }

  showInspector(): void {
    if (!this.isInspectorShown.value) this.toggleInspector();
  }

  toggleList(): void {
    if (!this.isNarrow.value) this.#hasList.value = !this.#hasList.value;
    else this.#sheet.value = this.isListShown.value ? null : "list";
  }

  toggleInspector(): void {
    if (!this.isNarrow.value) this.#hasInspector.value = !this.#hasInspector.value;
    else this.#sheet.value = this.isInspectorShown.value ? null : "inspector";
  }

  closeSheet(): void {
    this.#sheet.value = null;
  }

  showDialog(name: DialogName): void {
    this.closeSheet();
    this.dialog.value = name;
  }

  closeDialog(): void {
    this.dialog.value = null;
  }
}
