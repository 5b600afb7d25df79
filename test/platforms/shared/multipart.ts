/** A part of a form: its header and the bytes that follow it. */
export type FormPart = {
  readonly head: string;
  readonly content: Buffer;
  readonly fileName: string | undefined;
};

/** Returns the parts of a `multipart/form-data` body; undefined if its type names no boundary. */
export function formParts(contentType: string, body: Buffer): readonly FormPart[] | undefined {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (boundary === undefined) return undefined;
  return [...splitParts(body, `--${boundary}`)].flatMap((part) => {
    const headEnd = part.indexOf('\r\n\r\n');
    if (headEnd < 0) return [];
    const head = part.subarray(0, headEnd).toString();
    const fileName = /filename="?([^"\r\n]*?)"?(?:\r\n|;|$)/i.exec(head)?.[1];
    return [{ head, content: part.subarray(headEnd + 4), fileName }];
  });
}

function* splitParts(body: Buffer, marker: string): Generator<Buffer> {
  let from = body.indexOf(marker);
  while (from >= 0) {
    const next = body.indexOf(`\r\n${marker}`, from + marker.length);
    if (next < 0) return;
    yield body.subarray(from + marker.length + 2, next);
    from = next + 2;
  }
}
