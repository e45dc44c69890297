/**
 * All styles in one sheet, which index.html links to: a view that is loaded later has its looks at
 * once.
 *
 * The bundler's own way of loading a view is to wait for the view's sheet, with a helper that is
 * part of every first visit. With one sheet there is nothing to wait for.
 */

const helper = /vite\/preload-helper\.js$/;

/** The build's plugin. */
export function oneSheet() {
  return {
    name: "one-sheet",
    apply: "build",
    config: () => ({ build: { cssCodeSplit: false } }),
    transform: {
      filter: { id: helper },
      handler: () => ({ code: "export const __vitePreload = (load) => load();", map: null }),
    },
  };
}
