import { createHash } from 'node:crypto';
import { blocksOf, type WireBlock, type WireBody, type WireUsage } from './wire.ts';

/** The least prompt the platform caches, in tokens. */
const MIN_CACHED_TOKENS = 512;

export type PromptUsage = Omit<WireUsage, 'output_tokens'>;

/**
 * Plausible prompt usage: a prefix that ended at a cache mark of an earlier request is read, what lies
 * between it and this request's last mark is written, the rest is plain input. Tokens are characters / 4.
 */
export function createPromptCache(): { count(body: WireBody): PromptUsage } {
  const written = new Set<string>();
  return {
    count(body) {
      const segments = segmentsOf(body);
      const isMarked = segments.some((segment) => segment.isMarked);
      const hash = createHash('sha256').update(body.model);
      let total = 0;
      let read = 0;
      let marked = 0;
      for (const segment of segments) {
        total += Math.ceil(segment.text.length / 4);
        if (!isMarked) continue;
        hash.update(segment.text);
        const prefix = hash.copy().digest('base64url');
        if (written.has(prefix)) read = total;
        if (!segment.isMarked || total < MIN_CACHED_TOKENS) continue;
        written.add(prefix);
        marked = total;
      }
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

/** In the order the platform caches: tools, system, messages. */
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
