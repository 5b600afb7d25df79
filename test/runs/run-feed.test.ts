import { describe, expect, it } from 'vitest';
import type { AgentEvent } from '../../src/contracts/agent-event.ts';
import { type FeedEvent, maxOutputLength } from '../../src/contracts/feed.ts';
import type { Tool } from '../../src/contracts/tool.ts';
import { RunFeed } from '../../src/runs/run-feed.ts';
import type { Store } from '../../src/store/base/command.ts';
import { aTool } from '../agent/support/builders.ts';
import { callsTools, type ScriptedModel, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { openOwnStore } from '../support/own-store.ts';
import { createSteppedClock } from '../support/stepped-clock.ts';
import { playNext } from './run-builders.ts';

describe('the feed of a run', () => {
  const store = openOwnStore();

  /** Plays a run; returns each fact with the last write before it. */
  const play = async (
    model: (conversation: ReturnType<typeof aConversation>) => ScriptedModel,
    tools: readonly Tool[] = [],
  ) => {
    const conversation = aConversation(store());
    const { laneKey, say } = conversation;
    await say('go');
    let lastWrite = 'claim';
    const write: Store['write'] = async (command, input) => {
      const result = await store().write(command, input);
      lastWrite = command.name;
      return result;
    };
    const facts: (readonly [string, string])[] = [];
    const publish = (_: string, event: FeedEvent) => {
      const { kind, ...rest } = event;
      if (kind !== 'text') facts.push(['state' in rest ? `${kind} ${rest.state}` : kind, lastWrite]);
    };
    const feed = { isFollowed: () => true, publish, onTextRequest: () => undefined };
    const over = { store: { ...store(), write }, feed };
    await playNext(store(), laneKey, { model: model(conversation), tools, over });
    return facts;
  };

  it('tells nothing before its commit', async () => {
    const look = aTool('look', { execute: async () => ({ text: 'seen' }) });
    const plays = [callsTools({ id: '1', name: 'look' }), says('done')];
    const facts = await play(() => scriptedModel(...plays), [look]);
    expect(facts).toEqual([
      ['run started', 'claim'],
      ['session', 'claim'],
      ['cost', 'commitToolTurn'],
      ['tool started', 'markToolStarted'],
      ['tool done', 'storeToolResults'],
      ['cost', 'commitAnswer'],
      ['answer', 'commitAnswer'],
      ['run ended', 'commitAnswer'],
      ['changed', 'commitAnswer'],
    ]);
  });

  it('tells no answer that was stopped before its commit', async () => {
    const facts = await play(({ command }) =>
      scriptedModel(async function* () {
        await command({ kind: 'stop', isPrivileged: true, isAll: false });
        yield* says('Too late.');
      }),
    );
    expect(facts).toEqual([
      ['run started', 'claim'],
      ['session', 'claim'],
      ['cost', 'endRun'],
      ['run ended', 'endRun'],
      ['changed', 'endRun'],
    ]);
  });
});

describe('the output of a running tool', () => {
  const aFeedOfRun = (redact = (text: string) => text) => {
    const told: FeedEvent[] = [];
    const clock = createSteppedClock();
    const feed = {
      isFollowed: () => false,
      onTextRequest: () => undefined,
      publish: (_: string, event: FeedEvent) => void told.push(event),
    };
    const run = new RunFeed({ feed, clock, redact }, { runId: 'r', laneKey: 'l', sessionId: 's' });
    const write = (text: string, callId = 'c') =>
      run.tell({ type: 'tool_execution_update', callId, text }, false);
    const outputs = () => told.flatMap((event) => (event.kind === 'output' ? [event.text] : []));
    return { run, clock, write, outputs };
  };

  it('sends the newest output at most five times a second, however often it grows', async () => {
    const { clock, write, outputs } = aFeedOfRun();
    for (let line = 1; line <= 1_000; line += 1) write(`line ${line}`);
    await clock.advance(199);
    expect(outputs()).toEqual([]);
    await clock.advance(1);
    expect(outputs()).toEqual(['line 1000']);
    for (let line = 1; line <= 1_000; line += 1) write(`line ${line}`, String(line % 3));
    await clock.advance(1_000);
    expect(outputs()).toHaveLength(4);
  });

  it('sends the end of long output, without secrets and control characters', async () => {
    const secret = 'sk-secret';
    const { clock, write, outputs } = aFeedOfRun((text) => text.replaceAll(secret, '[secret]'));
    write(`${secret}\u001b[31m${'word '.repeat(2_000_000)}${secret}\u0007 \u001b[2Jend`);
    await clock.advance(200);
    const [text = ''] = outputs();
    expect(text).toHaveLength(maxOutputLength);
    expect(text).toMatch(/^(?:word|ord|rd|d)? .*word \[secret\] end$/);
  });

  it('sends no output after the end of its call or run', async () => {
    const { run, clock, write, outputs } = aFeedOfRun();
    const end: AgentEvent = {
      ...{ type: 'tool_execution_end', callId: 'c', name: 'look' },
      ...{ result: { text: 'whole' }, isError: false },
    };
    write('half');
    run.tell(end, true);
    await clock.advance(1_000);
    write('half of another', 'd');
    run.close();
    await clock.advance(1_000);
    expect(outputs()).toEqual([]);
  });
});
