/** What Vite makes of this call: the texts of the files that a pattern finds, by their paths. */
interface ImportMeta {
  glob(
    pattern: string,
    options: { query: "?raw"; import: "default"; eager: true },
  ): Record<string, string>;
}
