/** Measures how much of the readable input a provider reads from its cache: across turns, runs, and an hour. */

import { startStage } from '../test/e2e/stage.ts';
import { ada, untilSaid } from '../test/e2e/telegram-chat.ts';
import { startAnthropicServer } from '../test/platforms/anthropic/server.ts';
import type { Figure } from './figure.ts';

const hourMs = 3_600_000;
/** More results in one turn than a provider looks back. */
const wide = 25;

export async function measureCache(rounds: number): Promise<readonly Figure[]> {
  const ends: (() => Promise<void>)[] = [];
  const model = await startAnthropicServer();
  ends.push(() => model.close());
  try {
    const gateway = await startStage({ model }, (end) => ends.push(end));
    let calls = 0;
    const requests = () => model.requests.filter(({ body }) => (body.tools ?? []).length > 0);
    const ask = async (text: string, toolTurns: number) => {
      let left = toolTurns;
      calls += 1;
      const done = `Done ${calls}.`;
      model.script((body) => {
        if ((body.tools ?? []).length === 0) return { text: 'A talk' };
        left -= 1;
        if (left < 0) return { text: done };
        const limits = Array.from({ length: left % 5 === 0 ? wide : 1 }, (_, index) => (left + index) % 50);
        return { toolCalls: limits.map((limit) => ({ name: 'sessions_list', input: { limit: limit + 1 } })) };
      });
      gateway.telegram.userSends({ from: ada, text });
      await untilSaid(gateway.telegram, { chat: ada.id, text: done });
    };
    /** For the calls from `first` on: the share of the previous call's input that each reads from the cache. */
    const shareFrom = (first: number) => {
      const prompts = requests().map(({ prompt }) => ({
        read: prompt?.cache_read_input_tokens ?? 0,
        all:
          (prompt?.input_tokens ?? 0) +
          (prompt?.cache_read_input_tokens ?? 0) +
          (prompt?.cache_creation_input_tokens ?? 0),
      }));
      const later = prompts.slice(Math.max(first, 1));
      const read = later.reduce((sum, prompt) => sum + prompt.read, 0);
      const readable = later.reduce(
        (sum, _, index) => sum + (prompts[Math.max(first, 1) - 1 + index]?.all ?? 0),
        0,
      );
      return (100 * read) / readable;
    };
    const figures: Figure[] = [];
    const add = (name: string, first: number) =>
      figures.push({
        name: `cache: share that was read, ${name}`,
        unit: '%',
        parley: shareFrom(first),
        target: '≥ 95 %',
      });
    await ask('Look around, please.', rounds - 1);
    add(`${rounds} turns of a run`, 0);
    let first = requests().length;
    for (let run = 0; run < rounds; run += 1) await ask(`And what of ${run}?`, 0);
    add(`${rounds} runs`, first);
    await gateway.parley().stop();
    await gateway.start({ env: { CLOCK_AHEAD_MS: String(hourMs) } });
    first = requests().length;
    await ask('What did we say an hour ago?', 2);
    add('after an hour and a restart', first);
    return figures;
  } finally {
    for (const end of ends.reverse()) await end();
  }
}
