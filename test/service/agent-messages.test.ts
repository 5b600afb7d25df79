/** Messages of programs to an agent: their files, their keys, and their settings for one run. */
import { readdir } from 'node:fs/promises';
import { expect, it, vi } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { noProbe } from '#contracts/probe.ts';
import { type AgentMessageInput, createAgentService } from '../../src/service/agent-service.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, hangsAfter, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { playNext, runSettings } from '../runs/run-builders.ts';
import { aLane, aWorker, defaults, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aFolder } from '../support/own-folder.ts';
import { aFeed } from '../support/some-feed.ts';

describeEachDatabase('a message of a program', (store) => {
  const aService = (mode: 'steer' | 'collect' = 'steer') => {
    const lane = aLane(unique('c'), { settings: { ...defaults, mode } });
    const mediaDir = aFolder();
    const service = createAgentService({
      ...{ store: store(), clock: systemClock, probe: noProbe, feed: aFeed(), mediaDir },
      ownerLane: () => lane,
      start: () => undefined,
      reserve: () => undefined,
      maxFileBytes: 1000,
    });
    return { service, lane, mediaDir, files: () => readdir(mediaDir) };
  };
  const aFile = (text = 'words', name = 'notes.txt') => ({ name, bytes: Buffer.from(text) });
  it('brings its files to the model', async () => {
    const { service, lane, files } = aService();
    await service.send({ message: 'read this', files: [aFile('words', 'my "notes"\u202e.txt')] });
    const model = scriptedModel(says('Read.'));
    await playNext(store(), lane.key, { model });
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('my notes.txt');
    expect(await files()).toHaveLength(1);
  });

  it('stores a message once per key, with one copy of its files', async () => {
    const { service, files } = aService();
    const input = { message: 'read this', key: unique('key'), files: [aFile()] };
    const all = await Promise.all([service.send(input), service.send(input), service.send(input)]);
    expect(new Set(all.map(({ runId }) => runId)).size).toBe(1);
    expect(await files()).toHaveLength(1);
  });

  it('refuses the key of a message that differs in anything', async () => {
    const { service, lane, files } = aService();
    const key = unique('key');
    const first = { message: 'read this', key, files: [aFile()], override: { timeoutMs: 5_000 } };
    await service.send(first);
    const others: readonly AgentMessageInput[] = [
      { ...first, message: 'read that' },
      { ...first, files: [] },
      { ...first, files: [aFile('other')] },
      { ...first, files: [aFile('words', 'other.txt')] },
      { ...first, override: { timeoutMs: 6_000 } },
      { ...first, override: { timeoutMs: 5_000, prompt: 'Be brief.' } },
      { ...first, override: undefined },
    ];
    for (const other of others)
      await expect(service.send(other), JSON.stringify(other)).rejects.toMatchObject({ code: 'key_reused' });
    await expect(service.steer(lane.key, 'read this', key)).rejects.toMatchObject({ code: 'key_reused' });
    expect(await files()).toHaveLength(1);
  });

  it('leaves nothing behind if it is refused', async () => {
    const { service, lane, files } = aService();
    const nowhere = { message: 'read this', session: 'main:no:such:dm:one', files: [aFile()] };
    await expect(service.send(nowhere)).rejects.toMatchObject({ code: 'invalid_input' });
    const large = { message: 'read this', files: [aFile('x'.repeat(1001))] };
    await expect(service.send(large)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await files()).toEqual([]);
    expect(await service.workOf(lane.key)).toBeUndefined();
  });

  it('has a run of its own if it sets something for it, also after a crash', async () => {
    const { service, lane } = aService('collect');
    const { runId } = await service.send({ message: 'one', override: { timeoutMs: 5_000, prompt: 'Sing.' } });
    await service.send({ message: 'two' });
    const override = { timeoutMs: 5_000, prompt: 'Sing.' };
    const first = await aWorker(store(), unique('boot')).claimRun(lane.key, 0);
    expect(first).toMatchObject({ runId, override, isResumed: false });
    const system = vi.fn(async () => []);
    const model = scriptedModel(says('Sung.'), says('Said.'));
    const { run } = await playNext(store(), lane.key, { model, over: { systemFor: system } });
    expect(run).toMatchObject({ runId, override, isResumed: true });
    expect(system).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ prompt: 'Sing.' }));
    expect(JSON.stringify(model.requests)).not.toContain('two');
    const next = await playNext(store(), lane.key, { model });
    expect(next.run.override).toBeUndefined();
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('two');
  });

  it('ends its run when the time that it sets is over', async () => {
    const { service, lane } = aService();
    const { runId } = await service.send({ message: 'one', override: { timeoutMs: 50 } });
    await playNext(store(), lane.key, { model: scriptedModel(hangsAfter([])) });
    const signal = new AbortController().signal;
    const result = await service.wait(runId, 0, signal);
    expect(result).toMatchObject({ kind: 'ended', reason: 'timeout' });
    const { startedAt = 0, endedAt = 0 } = 'endedAt' in result ? result : {};
    expect(endedAt).toBeGreaterThan(startedAt);
    expect(endedAt - startedAt).toBeLessThan(runSettings.limits.runTimeoutMs / 2);
  });

  it('returns everything that its run has said, oldest first', async () => {
    const { service, lane } = aService();
    const { runId } = await service.send({ message: 'one' });
    const looks = [...says('I look.').slice(0, -1), ...callsTools({ id: '1', name: 'look' })];
    const model = scriptedModel(looks, says('Found it.'));
    await playNext(store(), lane.key, { model, tools: [aTool('look')] });
    await service.send({ message: 'two' });
    await playNext(store(), lane.key, { model: scriptedModel(says('Again.')) });
    expect(await service.payloadsOf(runId)).toEqual([{ text: 'I look.' }, { text: 'Found it.' }]);
    expect(await service.payloadsOf('nothing')).toEqual([]);
  });

  it('steers once per key', async () => {
    const { service, lane } = aService();
    await service.send({ message: 'begin' });
    const key = unique('key');
    const [first, second] = [
      await service.steer(lane.key, 'left', key),
      await service.steer(lane.key, 'left', key),
    ];
    expect(second).toEqual(first);
    await expect(service.steer(lane.key, 'right', key)).rejects.toMatchObject({ code: 'key_reused' });
    await expect(service.steer('main:no:such:dm:one', 'left')).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  it('asks for one summary per key, and for none while the session is busy', async () => {
    const { service, lane } = aService();
    await service.send({ message: 'begin' });
    expect(await service.requestSummary({ session: lane.key })).toBeUndefined();
    await playNext(store(), lane.key, { model: scriptedModel(says('Begun.')) });
    const key = unique('key');
    const first = await service.requestSummary({ session: lane.key, key });
    expect(first?.runId).toBeTruthy();
    expect(await service.requestSummary({ session: lane.key, key })).toEqual(first);
    expect(await service.workOf(lane.key)).toEqual({ isBusy: true, isStreaming: false });
    await expect(service.send({ message: '/compact', key })).rejects.toMatchObject({ code: 'key_reused' });
    await expect(service.requestSummary({ session: lane.key, agent: 'main' })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    await expect(service.requestSummary({ session: 'main:no:such:dm:one' })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });
});
