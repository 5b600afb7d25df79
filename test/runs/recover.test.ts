import { describe, expect, it } from 'vitest';
import type { FinishReason, MessagePart } from '../../src/contracts/message.ts';
import { storeToolParts } from '../../src/store/delivery/tool-send.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { commitToolTurn } from '../../src/store/lanes/commit-turn.ts';
import { aTool } from '../agent/support/builders.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aCommand, aLane, aMessage, aRoute, aWorker, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from '../support/own-store.ts';
import { playNext } from './run-builders.ts';

describe('the recovery of a crashed run', () => {
  const store = openOwnStore();

  /** Claims a run, writes its first tool turn, and crashes. */
  const crashBehindCalls = async (conversation: string, finish: FinishReason): Promise<void> => {
    const worker = aWorker(store());
    await worker.accept(aMessage({ conversation, text: 'go' }));
    const run = await worker.claimRun(aLane(conversation).key, 1);
    const parts: MessagePart[] = [
      { type: 'tool_call', data: { id: '1', name: 'act', input: '{}', finished: true } },
      { type: 'finish', data: { reason: finish, time: 1 } },
    ];
    await store().write(commitToolTurn, {
      ...held(run),
      message: { id: unique('message'), sessionId: run.sessionId, model: 'test', parts },
      calls: [{ callId: '1', name: 'act', input: '{}' }],
    });
    await lapse();
  };

  const resume = async (conversation: string): Promise<readonly string[]> => {
    const ran: string[] = [];
    const act = aTool('act', {
      replay: 'never',
      execute: async () => {
        ran.push('act');
        return { text: 'acted' };
      },
    });
    await playNext(store(), aLane(conversation).key, { model: scriptedModel(says('done')), tools: [act] });
    return ran;
  };

  const outcomes = async (conversation: string) =>
    (await readLane(store(), aLane(conversation).key)).inbox.map(({ outcome }) => outcome);

  it('runs a call that had not started', async () => {
    const conversation = unique('c');
    await crashBehindCalls(conversation, 'tool_use');
    expect(await resume(conversation)).toEqual(['act']);
    expect(await outcomes(conversation)).toEqual(['answered']);
  });

  it('runs no call of an answer that reached its length limit (pitfall 47)', async () => {
    const conversation = unique('c');
    await crashBehindCalls(conversation, 'max_tokens');
    expect(await resume(conversation)).toEqual([]);
    expect(await outcomes(conversation)).toEqual(['answered']);
  });

  it('runs nothing more if the run was stopped meanwhile', async () => {
    const conversation = unique('c');
    await crashBehindCalls(conversation, 'tool_use');
    await aWorker(store()).accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
    expect(await resume(conversation)).toEqual([]);
    expect(await outcomes(conversation)).toEqual(['cancelled']);
  });

  it('continues even if another session has spoken in its conversation since', async () => {
    const worker = aWorker(store());
    const [here, there] = [unique('c'), unique('c')];
    for (const conversation of [here, there]) await worker.accept(aMessage({ conversation, text: 'go' }));
    await worker.claimRun(aLane(there).key, 1);
    await lapse();
    const speaking = await worker.claimRun(aLane(here).key);
    await store().write(storeToolParts, {
      ...held(speaking),
      key: `${speaking.runId}:tool:1`,
      route: aRoute(here),
      toLane: aLane(there).key,
      contents: [{ kind: 'text', text: { text: 'dinner is ready', spans: [] } }],
    });
    await resume(there);
    expect(await outcomes(there)).toEqual(['answered']);
  });
});

function held({ laneKey, epoch, runId }: ClaimedRun) {
  return { laneKey, epoch, runId };
}

function lapse(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
