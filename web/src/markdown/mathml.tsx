/**
 * TeX as MathML elements, by Temml.
 *
 * Temml's tree is not put into the page by Temml: what it may contain is written here, so that no
 * command of TeX can make a link, an image, an identifier or an attribute of its own. Loaded when
 * an answer first contains mathematics.
 */

import { Fragment, h, type ComponentChildren, type VNode } from "preact";
import temml from "temml";

/** What Temml builds: an element where there is a type, text where there is text. */
interface TemmlNode {
  readonly type?: string;
  readonly text?: string;
  readonly children?: readonly TemmlNode[] | null;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly classes?: readonly string[];
  readonly style?: Readonly<Record<string, unknown>>;
}

const elements = new Set(
  (
    "math mrow mi mn mo mtext mspace mstyle mfrac msqrt mroot msub msup msubsup munder mover " +
    "munderover mmultiscripts mprescripts none mpadded mphantom mtable mtr mtd menclose"
  ).split(" "),
);

const attributes = new Set(
  (
    "display displaystyle scriptlevel mathvariant width height depth voffset lspace rspace form " +
    "fence separator stretchy symmetric largeop movablelimits minsize maxsize linethickness " +
    "accent columnalign rowspacing notation"
  ).split(" "),
);

const styles = new Set(
  (
    "color backgroundColor fontWeight fontStyle font-weight font-style mathDepth math-depth " +
    "textAlign width height padding paddingTop paddingRight paddingBottom paddingLeft " +
    "marginLeft border borderTop borderRight borderBottom borderLeft"
  ).split(" "),
);

// Lengths that TeX asks for are cut to these, in em, so that nothing covers the text around it.
const maxSize: [number, number] = [30, 30];

/** Return the MathML of a formula, or null where Temml cannot read it or does not trust it. */
export function typeset(source: string, isDisplay: boolean): VNode | null {
  try {
    const tree: TemmlNode = temml.__renderToMathMLTree(source, {
      displayMode: isDisplay,
      throwOnError: true,
      trust: false,
      maxSize,
    });
    return <>{toElement(tree)}</>;
  } catch {
    // Whatever is wrong with a formula, the reader gets its source.
    return null;
  }
}

function toElement(node: TemmlNode): ComponentChildren {
  if (node.text !== undefined) return node.text;
  const children = (node.children ?? []).map((child, index) => (
    <Fragment key={index}>{toElement(child)}</Fragment>
  ));
  if (node.type === undefined || !elements.has(node.type)) return children;
  const classes = (node.classes ?? []).filter((name) => /^[a-z]+(-[a-z0-9]+)*$/.test(name));
  return h(
    node.type,
    {
      ...picked(node.attributes, attributes),
      class: classes.length === 0 ? undefined : classes.join(" "),
      style: picked(node.style, styles),
    },
    children,
  );
}

function picked(
  values: Readonly<Record<string, unknown>> | undefined,
  allowed: ReadonlySet<string>,
): Record<string, string> | undefined {
  const entries = Object.entries(values ?? {}).filter(([name]) => allowed.has(name));
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}
