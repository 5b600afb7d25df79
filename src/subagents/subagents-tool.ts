import { z } from 'zod';
import { fitBytes } from '#channel-kit/clean-text.ts';
import type { ChildRecord } from '#contracts/child.ts';
import { textOf } from '#contracts/message.ts';
import { defineTool, type Tool, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { readChildren } from '../store/children/child.ts';
import { mayDirect, steerChild, stopChild } from '../store/children/operate-child.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';

export type SubagentsToolDeps = { readonly store: Store; start(effects: Effects): void };

const inputSchema = z.object({
  action: z.enum(['list', 'log', 'steer', 'stop']),
  id: z.string().optional().describe('Id or label of the sub-agent; for log, steer and stop.'),
  text: z.string().trim().min(1).max(32_000).optional().describe('For steer: the message to it.'),
});

/** Limits on the sub-agents listed and on the messages that a log shows. */
const listed = 50;
const logged = 20;
/** Longest message in a log, bytes: all of them fit into one result, including the newest. */
const loggedBytes = 1_500;

/** Creates the tool that lists, reads, steers and stops the sub-agents of the run's own session, and of no other. */
export function createSubagentsTool(deps: SubagentsToolDeps, run: ToolRun): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'subagents',
    description:
      'List your sub-agents; read the log of one, send it a message (steer) or stop it. ' +
      'You are notified when one ends: do not call this to wait for it.',
    inputSchema,
    parallelSafe: false,
    // A steer is stored once, under the call's id.
    replay: 'safe',
    authority: 'guest',
    execute: async (input, { callId }) => {
      const { store } = deps;
      const children = await store.read(readChildren, { sessionId: run.sessionId, limit: listed });
      if (input.action === 'list') return { text: JSON.stringify(children.map(summaryOf), undefined, 1) };
      const child = findChild(children, input.id);
      // In a group, one session serves people with different rights.
      if (!mayDirect(run.authority, child)) return said(lesserRights);
      switch (input.action) {
        case 'log':
          return { text: await logOf(store, child) };
        case 'steer':
          return said(await steer(deps, run, { child, text: input.text, callId }));
        case 'stop':
          return said(await stop(deps, child));
        default:
          return input.action satisfies never;
      }
    },
  });
}

async function steer(
  { store, start }: SubagentsToolDeps,
  { authority, runId, sessionKey: by }: ToolRun,
  { child, text, callId }: { child: ChildRecord; text: string | undefined; callId: string },
): Promise<string> {
  if (text === undefined) throw new Error('steer needs a text.');
  const message = { childId: child.id, id: `${runId}:${callId}`, text, authority, by };
  const { kind, effects } = await store.write(steerChild, message);
  start(effects);
  if (kind === 'lesser-rights') return lesserRights;
  return kind === 'done' ? 'It reads this at its next step.' : 'It has ended already.';
}

async function stop({ store, start }: SubagentsToolDeps, child: ChildRecord): Promise<string> {
  const { kind, effects, stopped } = await store.write(stopChild, { childId: child.id });
  start(effects);
  return kind === 'done' ? `Stopped, with all below it: ${stopped}.` : 'It has ended already.';
}

const lesserRights =
  'It works with more rights than the person you are answering has: only people with the same rights may read or direct it.';

function said(text: string): ToolOutput {
  return { text };
}

function findChild(children: readonly ChildRecord[], named: string | undefined): ChildRecord {
  const child = children.find(({ id }) => id === named) ?? children.find(({ label }) => label === named);
  if (child === undefined || named === undefined)
    throw new Error(`You have no sub-agent ${named ?? 'without a name'}; list shows the ones you have.`);
  return child;
}

function summaryOf({ id, label, state, status, depth }: ChildRecord) {
  return { id, label, state, status, depth };
}

async function logOf(store: Store, { sessionId }: ChildRecord): Promise<string> {
  const page = await store.read(readTranscriptPage, { sessionId, limit: logged });
  const lines = page.map(
    ({ position, role, parts }) => `#${position} ${role}: ${fitBytes(textOf(parts), loggedBytes)}`,
  );
  return lines.length === 0 ? 'It has not begun.' : lines.join('\n');
}
