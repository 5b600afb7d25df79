import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { BackgroundCommands } from './background.ts';
import { shellProblem } from './command.ts';
import type { ShellConfig } from './config.ts';

export function createJobsTool({ authority }: ShellConfig, background: BackgroundCommands): Tool {
  return defineTool({
    name: 'bash_jobs',
    description: "Lists this conversation's background commands, reads the output of one, or ends it.",
    inputSchema: z.object({
      action: z.enum(['list', 'read', 'end']),
      id: z.string().optional().describe('For read and end.'),
    }),
    parallelSafe: false,
    // Ending a command twice is ending it.
    replay: 'safe',
    authority,
    async execute({ action, id }, { run }) {
      if (action === 'list') return { text: background.list(run) };
      if (id === undefined) throw shellProblem(`Name the command to ${action}; "list" shows their ids.`);
      return { text: action === 'read' ? background.read(id, run) : await background.end(id, run) };
    },
  });
}
