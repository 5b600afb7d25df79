import { readFileSync } from 'node:fs';
import type { RefusalClass } from '#contracts/model.ts';

/** A refusal in the shape in which a model's server sends it, in words and values of our own. */
export type ErrorBody = {
  readonly status: number;
  readonly is: RefusalClass;
  readonly body: unknown;
  /** Where the shape was seen. */
  readonly from: string;
  /** Absent: servers of both kinds send it. */
  readonly api?: 'anthropic' | 'openai';
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the failure says to wait, ms. */
  readonly waitMs?: number;
  /** The window that it names, tokens; null: none, whatever numbers it has. */
  readonly window?: number | null;
  /** Words that the owner must read. */
  readonly says?: string;
};

const lines = readFileSync(new URL('bodies.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n');

/** One refusal a line. */
export const errorBodies = lines.map((line) => JSON.parse(line) as ErrorBody);
