/** Decodes a percent-encoded text; any other stays as it is. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not percent-encoded after all: take it as it stands.
    return text;
  }
}
