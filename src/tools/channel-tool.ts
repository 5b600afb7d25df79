import type { ChannelTool } from '#contracts/channel-abilities.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { defineTool, type Tool, type ToolRun } from '#contracts/tool.ts';
import type { ToolSender } from '../outbox/tool-sender.ts';
import { readReference, refused, sendParts, withoutEmpty } from './send-parts.ts';

/**
 * Makes a tool of the run's channel a tool of the run. What it does is a part of the run's own conversation, stored under
 * the call's key, so a call repeated after a crash finds it, and the outbox's rules of sending hold for it.
 */
export function createChannelTool(
  { toolSender, tool }: { readonly toolSender: ToolSender; readonly tool: ChannelTool },
  run: ToolRun & { readonly route: ReplyRoute },
): Tool {
  const { name, description, inputSchema, authority } = tool;
  return defineTool<unknown>({
    ...{ name, description, inputSchema, authority },
    prepareArguments: withoutEmpty,
    parallelSafe: false,
    replay: 'durable',
    execute: async (input, ctx) => {
      const route = withoutQuote(run.route);
      const { messageId: named, ...action } = tool.act(input, route);
      const about = named !== undefined && { messageId: readReference(named, { run }) };
      const content = { kind: 'action', tool: name, ...action, ...about } as const;
      const end = await sendParts({ toolSender, run, ctx, route }, { contents: [content] });
      if (end.state === 'failed')
        throw refused(`It was not done: ${end.problem ?? 'the network refused it'}`);
      if (end.state === 'unknown')
        return { text: 'It is on its way; whether it was done is not known yet. Do not repeat it.' };
      const [receipt] = end.receipts;
      return { text: receipt === undefined ? 'Done.' : `Sent as message ${receipt}.` };
    },
  });
}
