import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { ToolSend } from '../replies/dedupe.ts';
import type { PriorToolResult } from '../store/lanes/recover-run.ts';

/** The `message` tool's report of a send, in its result's metadata under `sent`. */
const sentSchema = z.object({
  state: z.enum(['sent', 'unknown', 'failed']),
  route: z.object({
    channel: z.string(),
    account: z.string(),
    conversation: z.string(),
    thread: z.string().optional(),
  }),
  text: z.string(),
  media: z.array(z.string()),
});

/** Parses the `message` tool's report of what it sent; undefined for every other tool. */
export function parseToolSend(
  tool: string,
  metadata: Record<string, unknown> | undefined,
): ToolSend | undefined {
  if (tool !== 'message') return undefined;
  const sent = sentSchema.safeParse(metadata?.sent);
  if (!sent.success) return undefined;
  const { route, ...rest } = sent.data;
  // The tool wrote these ids from a route.
  return { tool, ...rest, route: route as unknown as ReplyRoute };
}

/** Reads a tool send made by an earlier holder of the run from its stored result. */
export function storedToolSend({ tool, parts }: PriorToolResult): ToolSend | undefined {
  const metadata = parts.find((part) => part.type === 'tool_result')?.data.metadata;
  if (metadata === undefined) return undefined;
  // Parley wrote this result, so its metadata is the JSON of an object.
  return parseToolSend(tool, parseJson(metadata) as Record<string, unknown>);
}
