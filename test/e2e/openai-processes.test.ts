/** OpenAI's API with a gateway that works no lanes itself: workers run, and the answers come back through it. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Installation, type Member, openInstallation } from './installation.ts';
import { databaseServer } from './own-database.ts';
import { pageToken } from './page-state.ts';
import { answerQuestion } from './questions.ts';

const databases = databaseServer === undefined ? (['sqlite'] as const) : (['sqlite', 'postgres'] as const);

describe.each(databases)('OpenAI’s API of a gateway with two workers on %s', (database) => {
  const ends: (() => Promise<void>)[] = [];
  let parleys: Installation;
  let gateway: Member;
  let worker: Member;
  const client = () => new OpenAI({ apiKey: pageToken, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

  beforeAll(async () => {
    parleys = await openInstallation({ database }, (end) => ends.push(end));
    parleys.model.script(answerQuestion);
    gateway = await parleys.start('gateway', { role: 'gateway' });
    worker = await parleys.start('worker-1', { role: 'worker' });
    await parleys.start('worker-2', { role: 'worker' });
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });

  it('answers each call once, streaming and not, while a worker is killed', async () => {
    const { responses } = client();
    const ask = async (number: number) => {
      const input = `question-${number}`;
      if (number % 2 === 0) return (await responses.create({ model: 'main', input })).output_text;
      const stream = await responses.create({ model: 'main', input, stream: true });
      let text = '';
      for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta;
      return text;
    };
    const answers = Promise.all(Array.from({ length: 12 }, (_, index) => ask(index)));
    await worker.kill();
    expect(await answers).toEqual(
      Array.from({ length: 12 }, (_, index) => expect.stringContaining(`question-${index}`)),
    );
    const items = await parleys.read(`select outcome from inbox where source = 'api'`);
    expect(items).toEqual(Array.from({ length: 12 }, () => ({ outcome: 'answered' })));
  }, 120_000);

  it('continues a conversation, repeats an answer and shows it again after a restart of the gateway', async () => {
    const runs = async () => (await parleys.read('select id from runs')).length;
    const before = await runs();
    const once = { headers: { 'idempotency-key': 'once' } };
    const first = await client().responses.create({ model: 'main', input: 'question-1' }, once);
    await gateway.kill();
    gateway = await parleys.start('gateway', { role: 'gateway' });
    const { responses } = client();
    expect(await responses.create({ model: 'main', input: 'question-1' }, once)).toEqual(first);
    expect(await responses.retrieve(first.id)).toEqual(first);
    const next = { model: 'main', input: 'question-2', previous_response_id: first.id };
    expect((await responses.create(next)).conversation).toEqual(first.conversation);
    expect(await runs()).toBe(before + 2);
  }, 120_000);
});
