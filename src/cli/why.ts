import * as operations from '../operations/why.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/**
 * Traces a received message to its outcome, or a sent one to the message it answers, and shows the record of anything
 * else that Parley gives an id.
 */
export async function showWhy(
  id: string,
  { withText }: { readonly withText: boolean },
): Promise<CommandOutput> {
  const { text, record } = await callOperation(operations.why, { id, withText: String(withText) });
  return { result: record, lines: [text] };
}
