import { expect, it } from 'vitest';
import type { Store } from '../../../src/store/base/command.ts';
import { patienceMs } from '../../support/patience.ts';
import { aConversation } from '../a-conversation.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the model of a session', (open) => {
  /** Sends a lane command, which the claim that reaches it carries out. */
  const command = async (store: Store, conversation: string, name: string, input: object) => {
    const worker = aWorker(store);
    const sender = { id: 'ann', name: 'ann' };
    const words = { text: `/${name}`, prompt: '', sender, sentAt: 1, attachments: [] };
    const content = { ...words, command: { name, input: { input } } };
    await worker.accept(aMessage({ conversation, text: '', item: { kind: 'command', content } }));
    expect((await worker.claim(aLane(conversation).key)).kind).toBe('again');
  };
  const choice = { meant: undefined, byDefault: 'demo', names: 'demo, haiku' };

  it('applies /model and /think from the next run on, even after a crash', async () => {
    const [conversation, other] = [unique('c'), unique('c')];
    const worker = aWorker(open());
    await worker.accept(aMessage({ conversation, text: 'one' }));
    const first = await worker.claimRun(aLane(conversation).key);
    expect(first.model).toBe('demo');
    expect(first.reasoning).toBeUndefined();
    await worker.answer(first, 'one');

    await command(open(), conversation, 'model', { ...choice, wish: 'set', name: 'haiku' });
    await command(open(), conversation, 'think', { level: 'high', byDefault: 'off' });
    await worker.accept(aMessage({ conversation, text: 'two' }));
    expect(await worker.claimRun(aLane(conversation).key, 1)).toMatchObject({
      model: 'haiku',
      reasoning: 'high',
    });
    await expect
      .poll(async () => worker.claim(aLane(conversation).key), { timeout: patienceMs })
      .toMatchObject({ run: { model: 'haiku', reasoning: 'high', isResumed: true } });
    await worker.accept(aMessage({ conversation: other, text: 'three' }));
    expect((await worker.claimRun(aLane(other).key)).model).toBe('demo');
  });

  it('applies /verbose and /reasoning from the next run on, even after a crash', async () => {
    const { conversation, begin, answer, say } = aConversation(open());
    const first = await begin('one');
    expect(first.display).toEqual({});
    await answer(first, 'one');
    await command(open(), conversation, 'verbose', { level: 'on', byDefault: 'off' });
    await command(open(), conversation, 'reasoning', { display: 'stream', byDefault: 'off' });
    await say('two');
    const chosen = { verbose: 'on', reasoning: 'stream' };
    const again = aWorker(open());
    expect((await again.claimRun(aLane(conversation).key, 1)).display).toEqual(chosen);
    await expect
      .poll(async () => again.claim(aLane(conversation).key), { timeout: patienceMs })
      .toMatchObject({ run: { display: chosen, isResumed: true } });
  });

  it("returns to the agent's model on /model default, and ignores an unknown name", async () => {
    const { conversation, say, claimRun, begin, answer } = aConversation(open());
    await command(open(), conversation, 'model', { ...choice, wish: 'set', name: 'haiku' });
    await command(open(), conversation, 'model', { ...choice, wish: 'unknown', name: 'hiaku' });
    const run = await begin('one');
    expect(run.model).toBe('haiku');
    await answer(run, 'one');
    await command(open(), conversation, 'model', { ...choice, wish: 'default', name: '' });
    await say('two');
    expect((await claimRun()).model).toBe('demo');
  });
});
