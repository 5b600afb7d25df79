import { expect, it } from 'vitest';
import { lazyStore } from '../support/lazy-store.ts';
import { someTimelines } from '../support/some-timelines.ts';

it('notifies a conversation of changes in its sub-agents at every depth', () => {
  const told: string[] = [];
  const live = {
    publish: (event: object) => void told.push(JSON.stringify(event)),
  };
  const timelines = someTimelines(lazyStore(), { live });
  const top = 'main:bot:test:dm:ann';
  const child = `agent:main:sub:1:abc@${top}`;
  const grandchild = `agent:main:sub:2:def@${child}`;
  const changed = JSON.stringify({ kind: 'timeline', laneKey: top, event: { kind: 'changed' } });
  for (const laneKey of [child, grandchild]) {
    told.length = 0;
    timelines.publish(laneKey, { kind: 'run', runId: 'r', state: 'ended' });
    expect(told).toContain(changed);
    told.length = 0;
    timelines.publish(laneKey, { kind: 'preview', runId: 'r', text: 'so far' });
    expect(told).toHaveLength(1);
  }
  told.length = 0;
  timelines.publish(top, { kind: 'run', runId: 'r', state: 'ended' });
  expect(told).toHaveLength(1);
});
