/** Front matter of Markdown files: YAML between two lines `---`. */

/** The largest front matter that public files have takes a tenth of this. */
const maxMatterChars = 16 * 1024;
/** Files nest metadata two levels deep; a thousand levels would exhaust the parser's stack. */
const maxNesting = 32;

/** A file's parts. `line`: on which line of the file the matter begins, counted from 1. */
export type MatterParts = { readonly matter: string; readonly body: string; readonly line: number };

/** Decodes a file's bytes, without the byte order mark; undefined if they aren't UTF-8. */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Says whether the line begins or ends front matter. */
export function isMatterFence(line: string): boolean {
  return line.trimEnd() === '---';
}

/** Splits a text that begins with front matter. `unclosed`: its second line `---` is missing. */
export function splitMatter(text: string): MatterParts | 'none' | 'unclosed' {
  const [first = '', ...lines] = text.split('\n');
  if (!isMatterFence(first)) return 'none';
  const end = lines.findIndex(isMatterFence);
  if (end === -1) return 'unclosed';
  // A carriage return would follow a closing quote on the last line, where YAML doesn't take it for a line's end.
  const matter = lines.slice(0, end).map((line) => line.replace(/\r$/, ''));
  return { matter: matter.join('\n'), body: lines.slice(end + 1).join('\n'), line: 2 };
}

/** Content of the matter, not yet checked by a schema. `problem`: what is wrong with it, and what to do. */
export type MatterResult =
  | { readonly kind: 'matter'; readonly matter: unknown }
  | { readonly kind: 'refused'; readonly problem: string };

/**
 * Parses the matter. With `failsafe`, every value is a text, as it was written. Loads the YAML parser at its first call.
 */
export async function parseMatter(
  { matter, line }: Pick<MatterParts, 'matter' | 'line'>,
  schema: 'core' | 'failsafe',
): Promise<MatterResult> {
  if (matter.length > maxMatterChars)
    return refuse(
      `what is between the lines --- has ${matter.length} characters; the limit is ${maxMatterChars}`,
    );
  if (nestingOf(matter) > maxNesting) return refuse('what is between the lines --- is nested too deeply');
  const { parseDocument } = await import('yaml');
  try {
    const document = parseDocument(matter, { schema, uniqueKeys: true, logLevel: 'silent' });
    // A warning is a tag that isn't YAML's own.
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) throw error;
    // Aliases let a few lines expand to gigabytes, and no such file needs them.
    return { kind: 'matter', matter: document.toJS({ maxAliasCount: 0 }) };
  } catch (error) {
    const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    const place = first.replace(/ at line (\d+)/, (_, at: string) => ` at line ${Number(at) + line - 1}`);
    return refuse(
      `what is between the lines --- isn't valid YAML (${oneShownLine(place).replace(/:$/, '')}). Put a text that contains ": " or " #" in quotes`,
    );
  }
}

/** The most brackets that are open at once, or the deepest indentation: no YAML is nested deeper. */
function nestingOf(text: string): number {
  let open = 0;
  let most = 0;
  for (const character of text) {
    if (character === '[' || character === '{') most = Math.max(most, ++open);
    if (character === ']' || character === '}') open = Math.max(0, open - 1);
  }
  const compact = text.match(/^[ \t]*(?:[-?:][ \t]+)*/gm) ?? [];
  return Math.max(most, ...compact.map((start) => start.replace(/[^-?:]/g, '').length));
}

/** Returns the text on one line, without characters that people don't see. */
export function oneShownLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
}

function refuse(problem: string): Extract<MatterResult, { readonly kind: 'refused' }> {
  return { kind: 'refused', problem };
}
