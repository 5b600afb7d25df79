/** Reads `SKILL.md` as agentskills.io specifies it. Its `allowed-tools` isn't read: a skill can't give itself rights. */
import { z } from 'zod';
import { decodeText, oneShownLine, parseMatter, splitMatter } from '#channel-kit/front-matter.ts';
import { skillNamePattern } from '../config/agent-schema.ts';

/** Longest `SKILL.md` in bytes: one result of a tool has to hold all of it. */
export const maxSkillFileBytes = 30 * 1024;
/** A longer body is accepted with a warning: the specification recommends less than 5,000 tokens. */
const recommendedTokens = 5_000;
const charsPerToken = 4;

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
  const text = decodeText(bytes);
  if (text === undefined) return refuse("SKILL.md isn't UTF-8 text");
  const parts = splitMatter(text);
  if (typeof parts === 'string')
    return refuse('SKILL.md must begin with a line ---, its name and description, and a second line ---');
  const read = await parseMatter(parts, 'core');
  if (read.kind === 'refused') return read;
  const parsed = matterSchema.safeParse(read.matter);
  if (!parsed.success)
    return refuse(parsed.error.issues[0]?.message ?? 'its name and description are missing');
  const { name, description, compatibility } = parsed.data;
  if (name !== folderName)
    return refuse(
      `its name is "${name}", but its folder is called "${oneShownLine(folderName)}"; make them the same`,
    );
  const tokens = Math.ceil(parts.body.length / charsPerToken);
  return {
    kind: 'skill',
    name,
    description: oneShownLine(description),
    ...(compatibility !== undefined && { compatibility: oneShownLine(compatibility) }),
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
      .refine((text) => oneShownLine(text) !== '', 'its description is empty'),
    compatibility: z
      .string('compatibility is no text')
      .max(500, 'compatibility has more than 500 characters')
      .exactOptional(),
  },
  'what is between the lines --- must be a name and a description',
);

function refuse(problem: string): { readonly kind: 'refused'; readonly problem: string } {
  return { kind: 'refused', problem };
}
