/**
 * Shared by all floors, the bare minimum that Parley is compared with: Anthropic's SDK, a promise chain per
 * conversation and the complete history in memory. Nothing is durable, so it costs what any bot on these
 * libraries costs.
 */
import Anthropic from '@anthropic-ai/sdk';

const anthropic = new Anthropic({ baseURL: required('ANTHROPIC_BASE_URL'), maxRetries: 0 });
const histories = new Map<string, Anthropic.MessageParam[]>();
const chains = new Map<string, Promise<void>>();

/** Reads a variable that the benchmarks set. */
export function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`the floors are started by bench/main.ts, which sets ${name}`);
  return value;
}

/** Answers a message after the earlier ones of its conversation. */
export function hear(conversation: string, text: string, say: (text: string) => Promise<unknown>): void {
  const turn = (chains.get(conversation) ?? Promise.resolve()).then(async () => {
    await say(await answerTo(conversation, text));
  });
  chains.set(
    conversation,
    turn.catch((error: unknown) => console.error(error)),
  );
}

async function answerTo(conversation: string, text: string): Promise<string> {
  const history = histories.get(conversation) ?? [];
  histories.set(conversation, history);
  history.push({ role: 'user', content: text });
  const stream = await anthropic.messages.create({
    model: 'claude-sonnet-5-5',
    max_tokens: 8192,
    messages: history,
    stream: true,
  });
  let said = '';
  for await (const event of stream) {
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') said += event.delta.text;
  }
  history.push({ role: 'assistant', content: said });
  return said;
}
