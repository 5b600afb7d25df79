/** OpenAI's API with a gateway that works no lanes itself: workers run, and the answers come back through it. */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { openInstallation } from './installation.ts';
import { databaseServer } from './own-database.ts';
import { pageToken } from './page-state.ts';
import { answerQuestion } from './questions.ts';

const databases = databaseServer === undefined ? (['sqlite'] as const) : (['sqlite', 'postgres'] as const);

describe.each(databases)('OpenAI’s API of a gateway with two workers on %s', (database) => {
  it('answers each call once, streaming and not, while a worker is killed', async ({ onTestFinished }) => {
    const parleys = await openInstallation({ database }, onTestFinished);
    parleys.model.script(answerQuestion);
    const { url } = await parleys.start('gateway', { role: 'gateway' });
    const worker = await parleys.start('worker-1', { role: 'worker' });
    await parleys.start('worker-2', { role: 'worker' });
    const client = new OpenAI({ apiKey: pageToken, baseURL: `${url}/v1`, maxRetries: 0 });
    const ask = async (number: number) => {
      const input = `question-${number}`;
      if (number % 2 === 0) return (await client.responses.create({ model: 'main', input })).output_text;
      const stream = await client.responses.create({ model: 'main', input, stream: true });
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

  it('continues a conversation, repeats an answer and shows it again after a restart of the gateway', async ({
    onTestFinished,
  }) => {
    const parleys = await openInstallation({ database }, onTestFinished);
    parleys.model.script(answerQuestion);
    await parleys.start('worker', { role: 'worker' });
    const gateway = await parleys.start('gateway', { role: 'gateway' });
    const clientOf = ({ url }: { readonly url: string }) =>
      new OpenAI({ apiKey: pageToken, baseURL: `${url}/v1`, maxRetries: 0 });
    const once = { headers: { 'idempotency-key': 'once' } };
    const first = await clientOf(gateway).responses.create({ model: 'main', input: 'question-1' }, once);
    await gateway.kill();
    const again = clientOf(await parleys.start('gateway', { role: 'gateway' }));
    expect(await again.responses.create({ model: 'main', input: 'question-1' }, once)).toEqual(first);
    expect(await again.responses.retrieve(first.id)).toEqual(first);
    const next = { model: 'main', input: 'question-2', previous_response_id: first.id };
    expect((await again.responses.create(next)).conversation).toEqual(first.conversation);
    expect(await parleys.read('select id from runs')).toHaveLength(2);
  }, 120_000);
});
