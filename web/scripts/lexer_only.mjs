/**
 * Leave out of the Markdown parser what the page does not call: its writer of HTML.
 *
 * The package is one module, which sets up a parser for everybody as it is loaded; a bundler has to
 * keep that, and all that it touches. Here nobody uses it.
 */

const parser = /\/marked\/lib\/marked\.esm\.js$/;

/** The build's plugin. */
export function lexerOnly() {
  return {
    name: "lexer-only",
    apply: "build",
    transform: {
      filter: { id: parser },
      handler(code) {
        const edits = this.parse(code).body.flatMap(withoutEffect);
        if (edits.length === 0) throw new Error("the Markdown parser sets up nothing any more");
        return { code: edits.reduceRight((text, apply) => apply(text), code), map: null };
      },
    },
  };
}

/** Return how a top-level statement loses its effect; a value is only had where it is used. */
function withoutEffect(statement) {
  if (statement.type === "ExpressionStatement") return [edit(statement, () => "")];
  if (statement.type !== "VariableDeclaration") return [];
  return statement.declarations
    .filter(({ init }) => ["NewExpression", "MemberExpression"].includes(init?.type))
    .map(({ init }) => edit(init, (value) => `/*@__PURE__*/(() => ${value})()`));
}

function edit({ start, end }, change) {
  return (code) => code.slice(0, start) + change(code.slice(start, end)) + code.slice(end);
}
