/** Reads `SKILL.md` as agentskills.io specifies it. Its `allowed-tools` isn't read: a skill can't give itself rights. */
import { z } from 'zod';
import { skillNamePattern } from '../config/agent-schema.ts';

/** Longest `SKILL.md` in bytes: one result of a tool has to hold all of it. */
export const maxSkillFileBytes = 30 * 1024;
/** A longer body is accepted with a warning: the specification recommends less than 5,000 tokens. */
const recommendedTokens = 5_000;
const charsPerToken = 4;
/** The largest front matter that public skills have takes a tenth of this. */
const maxFrontMatterChars = 16 * 1024;
/** Skills nest metadata two levels deep; a thousand levels would exhaust the parser's stack. */
const maxNesting = 32;

export type SkillFileResult =
  | {
      readonly kind: 'skill';
      readonly name: string;
      /** One line. */
      readonly description: string;
      readonly compatibility?: string;
      /** A sentence about what is unwise but possible. */
      readonly warning?: string;
    }
  /** `problem`: what is wrong, and what to do. */
  | { readonly kind: 'refused'; readonly problem: string };

/** Parses the file of a skill whose folder has that name. Loads the YAML parser at its first call. */
export async function parseSkillFile(bytes: Uint8Array, folderName: string): Promise<SkillFileResult> {
  if (bytes.length > maxSkillFileBytes)
    return refuse(
      `SKILL.md has ${bytes.length} bytes; the limit is ${maxSkillFileBytes}. Move details to files that it names`,
    );
  const text = decode(bytes);
  if (text === undefined) return refuse("SKILL.md isn't UTF-8 text");
  const parts = splitFile(text);
  if (parts === undefined)
    return refuse('SKILL.md must begin with a line ---, its name and description, and a second line ---');
  const { matter, body } = parts;
  if (matter.length > maxFrontMatterChars)
    return refuse(
      `what is between the lines --- has ${matter.length} characters; the limit is ${maxFrontMatterChars}`,
    );
  const parsed = await parseMatter(matter);
  if (parsed.kind === 'refused') return parsed;
  const { name, description, compatibility } = parsed.matter;
  if (name !== folderName)
    return refuse(
      `its name is "${name}", but its folder is called "${oneLine(folderName)}"; make them the same`,
    );
  const tokens = Math.ceil(body.length / charsPerToken);
  return {
    kind: 'skill',
    name,
    description: oneLine(description),
    ...(compatibility !== undefined && { compatibility: oneLine(compatibility) }),
    ...(tokens > recommendedTokens && {
      warning: `its instructions have about ${tokens} tokens, which each use costs; fewer than ${recommendedTokens} are recommended`,
    }),
  };
}

const matterSchema = z.looseObject(
  {
    name: z
      .string('its name is missing, or is no text')
      .max(64, 'its name has more than 64 characters')
      .regex(skillNamePattern, 'its name may only have a-z, 0-9 and single hyphens between them'),
    description: z
      .string('its description is missing, or is no text')
      .max(1024, 'its description has more than 1024 characters')
      .refine((text) => oneLine(text) !== '', 'its description is empty'),
    compatibility: z
      .string('compatibility is no text')
      .max(500, 'compatibility has more than 500 characters')
      .exactOptional(),
  },
  'what is between the lines --- must be a name and a description',
);

function splitFile(text: string): { readonly matter: string; readonly body: string } | undefined {
  const [first = '', ...lines] = text.split('\n');
  const isFence = (line: string) => line.trimEnd() === '---';
  const end = lines.findIndex(isFence);
  if (!isFence(first) || end === -1) return undefined;
  return { matter: lines.slice(0, end).join('\n'), body: lines.slice(end + 1).join('\n') };
}

type Matter = z.output<typeof matterSchema>;
type MatterResult =
  | { readonly kind: 'matter'; readonly matter: Matter }
  | { readonly kind: 'refused'; readonly problem: string };

async function parseMatter(text: string): Promise<MatterResult> {
  if (nestingOf(text) > maxNesting) return refuse('what is between the lines --- is nested too deeply');
  const { parseDocument } = await import('yaml');
  try {
    const document = parseDocument(text, { schema: 'core', uniqueKeys: true, logLevel: 'silent' });
    // A warning is a tag that isn't YAML's own.
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) throw error;
    // Aliases let a few lines expand to gigabytes, and no skill needs them.
    const parsed = matterSchema.safeParse(document.toJS({ maxAliasCount: 0 }));
    if (parsed.success) return { kind: 'matter', matter: parsed.data };
    return refuse(parsed.error.issues[0]?.message ?? 'its name and description are missing');
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    return refuse(
      `what is between the lines --- isn't valid YAML (${oneLine(line).replace(/:$/, '')}). Put a text that contains ": " or " #" in quotes`,
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

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Removes what could make a description look like other parts of the prompt, or that people don't see. */
function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
}

function refuse(problem: string): { readonly kind: 'refused'; readonly problem: string } {
  return { kind: 'refused', problem };
}
