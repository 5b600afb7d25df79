import { agentId, runId, type SessionKey, sessionId } from '#contracts/ids.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { createByteBudget } from '../../src/outbox/byte-budget.ts';
import type { ToolSendEnd } from '../../src/outbox/tool-sender.ts';
import type { ToolSendInput } from '../../src/store/delivery/tool-send.ts';
import { createMessageTool, type MessageToolDeps } from '../../src/tools/message.ts';
import { aRoute } from '../replies/reply-builders.ts';
import { shaping } from '../support/free-loop.ts';

const run: ToolRun = {
  runId: runId('run'),
  sessionId: sessionId('session'),
  // This test doesn't need a key in the codec's form.
  sessionKey: 'agent:main:main' as SessionKey,
  agentId: agentId('main'),
  route: aRoute(),
  authority: 'owner',
  workspace: '/nowhere',
  epoch: 1,
};

export type Circumstances = Partial<MessageToolDeps> & {
  readonly end?: Partial<ToolSendEnd>;
  readonly by?: Partial<ToolRun>;
  /** Whether an earlier attempt has sent it. */
  readonly isPosted?: true;
};

/** Calls the tool as the loop does. Returns what it sends and its output. */
export async function call(input: object, { end = {}, by = {}, isPosted, ...changes }: Circumstances = {}) {
  const sent: string[] = [];
  const postings: ToolSendInput[] = [];
  const posted = { conversationKey: '', state: 'sent', problem: undefined, receipts: [] } as const;
  const tool = createMessageTool(
    {
      toolSender: {
        settled: () => undefined,
        isPosted: async () => isPosted === true,
        send: async (posting) => {
          const { contents, route } = posting;
          postings.push(posting);
          for (const content of contents) if (content.kind === 'text') sent.push(content.text.text);
          const keys = contents.map((_, index) => String(index));
          return { ...posted, keys, route, sentParts: keys.length, allParts: keys.length, ...end };
        },
      },
      shaper: shaping.shaper,
      capabilitiesFor: () => undefined,
      ...{
        mediaDir: '/nowhere',
        maxFileBytes: 1_000_000,
        copies: createByteBudget(1_000_000),
        readerFor: () => undefined,
      },
      routeTo: async () => undefined,
      ...changes,
    },
    { ...run, ...by },
  );
  const signal = new AbortController().signal;
  const ctx = { callId: 'call', run, signal, isRepeat: isPosted === true, update: () => undefined };
  const parsed = tool.inputSchema.parse(tool.prepareArguments?.(input));
  return { output: await tool.execute(parsed, ctx), sent, postings };
}
