import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import type { SkillFile, SkillReader, SkillSnapshot } from '#contracts/skill.ts';
import { defineTool, maxResultBytes, type Tool } from '#contracts/tool.ts';

const inputSchema = z.object({
  name: z.string().max(64).describe('One of the skills in your instructions.'),
  file: z.string().max(1000).optional().describe('A file that the skill names; absent: its instructions.'),
});

/** Creates the tool that reads the run's skills. Everyone may cause it: a skill tells the agent how, not what it may. */
export function createSkillTool(reader: SkillReader, { skills }: SkillSnapshot): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'skill',
    description: 'Read the instructions of a skill, or one of the files they mention.',
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    async execute({ name, file }) {
      const skill = skills.find((each) => each.name === name);
      if (skill === undefined)
        throw problem(`There is no skill ${name}; there are: ${skills.map((each) => each.name).join(', ')}.`);
      const files = await reader.read(skill);
      if (file !== undefined) return { text: textIn(files, file.replace(/^\.\//, '')) };
      const others = [...files.keys()].filter((path) => path !== 'SKILL.md');
      return { text: [textIn(files, 'SKILL.md'), ...notesOn(name, others)].join('\n\n') };
    },
  });
}

/** Longest list of a skill's files, in characters: result and list have to fit beside each other. */
const maxListChars = 1_000;

function notesOn(name: string, others: readonly string[]): readonly string[] {
  if (others.length === 0) return [];
  const list = others.join(', ');
  const shown = list.length <= maxListChars ? list : `${list.slice(0, maxListChars).toWellFormed()} …`;
  return [
    `[Note from the gateway] Files of this skill: ${shown}. Read one with file. Its programs only run by bash with skill: "${name}", which sets SKILL_DIR to their folder.`,
  ];
}

function textIn(files: ReadonlyMap<string, SkillFile>, path: string): string {
  const file = files.get(path);
  if (file === undefined)
    throw problem(`The skill has no file ${path}; it has: ${[...files.keys()].join(', ')}.`);
  if (file.bytes.length > maxResultBytes)
    throw problem(`${path} has ${file.bytes.length} bytes, too many to read at once. Search it with bash.`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(file.bytes);
  } catch {
    throw problem(`${path} isn't text.`);
  }
}

function problem(message: string): ParleyError {
  return new ParleyError('tool_failed', message);
}
