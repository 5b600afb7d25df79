import { createHash } from 'node:crypto';
import { blocksOf, type WireBlock, type WireBody, type WireUsage } from './wire.ts';

/** The shortest prompt that the platform caches, in tokens. */
const MIN_CACHED_TOKENS = 512;

export type PromptUsage = Omit<WireUsage, 'output_tokens'>;

/** How far before each of its marks a request finds what an earlier one has written, in blocks. */
const lookback = 20;

/**
 * Counts plausible prompt usage. A prefix that ended at a cache mark of an earlier request counts as read if it ends
 * shortly before a mark of this one. What follows it, up to this request's last mark, counts as written, and the rest
 * is plain input. Tokens are characters / 4.
 */
export function createPromptCache(): { count(body: WireBody): PromptUsage } {
  const written = new Set<string>();
  return {
    count(body) {
      const segments = segmentsOf(body);
      const isMarked = segments.some((segment) => segment.isMarked);
      const hash = createHash('sha256').update(body.model);
      const fresh: string[] = [];
      let [total, read, marked] = [0, 0, 0];
      /** The last prefix that was written, and the index of the block at which it ended. */
      let known: { readonly tokens: number; readonly ended: number } | undefined;
      for (const [index, segment] of segments.entries()) {
        total += Math.ceil(segment.text.length / 4);
        if (!isMarked) continue;
        hash.update(segment.text);
        const prefix = hash.copy().digest('base64url');
        if (written.has(prefix)) known = { tokens: total, ended: index };
        if (!segment.isMarked) continue;
        if (known !== undefined && index - known.ended < lookback) read = known.tokens;
        if (total < MIN_CACHED_TOKENS) continue;
        fresh.push(prefix);
        marked = total;
      }
      for (const prefix of fresh) written.add(prefix);
      const cached = Math.max(read, marked);
      return {
        input_tokens: total - cached,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: cached - read,
      };
    },
  };
}

type Segment = { readonly text: string; readonly isMarked: boolean };

/** Lists the segments in the order in which the platform caches them: tools, system, messages. */
function segmentsOf(body: WireBody): readonly Segment[] {
  const system: readonly WireBlock[] =
    typeof body.system === 'string' ? [{ type: 'text', text: body.system }] : (body.system ?? []);
  return [
    ...(body.tools ?? []).map(segment),
    ...system.map(segment),
    ...body.messages.flatMap((message) => blocksOf(message).map(segment)),
  ];
}

function segment(part: { readonly cache_control?: unknown }): Segment {
  const { cache_control: mark, ...content } = part;
  return { text: JSON.stringify(content), isMarked: mark !== undefined };
}
