/**
 * Which side panels are open.
 *
 * Owns that and nothing of what they show. On a narrow screen the same panels are sheets, which the
 * view keeps for itself.
 */

import { signal } from "@preact/signals";

export class Layout {
  readonly isListShown = signal(true);
  readonly isInspectorShown = signal(false);

  toggleList(): void {
    this.isListShown.value = !this.isListShown.value;
  }

  showInspector(): void {
    this.isInspectorShown.value = true;
  }

  toggleInspector(): void {
    this.isInspectorShown.value = !this.isInspectorShown.value;
  }
}
