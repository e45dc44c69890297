/** A text of the catalogue in which what is to be typed stands between `backticks`. */

export function TypedWords({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((piece, index) =>
        index % 2 === 0 ? piece : <code key={index}>{piece}</code>,
      )}
    </>
  );
}
