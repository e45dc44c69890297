/** The first words of a node with who says them, or whose it is where they may not be read. */

import { Fragment } from "preact";

import { ownerOf, turnsOf } from "../../cache/node_words";
import type { WireCacheNode } from "../../wire/cache_snapshot";

export function NodeHead({ node }: { node: WireCacheNode }) {
  if (node.text === null) return <>{ownerOf(node)}</>;
  return (
    <>
      {turnsOf(node).map(({ role, words }, index) => (
        <Fragment key={index}>
          {role !== "" && <b>{role}</b>} {words}{" "}
        </Fragment>
      ))}
    </>
  );
}
