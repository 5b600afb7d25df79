/** Messages that used to vanish or to lose their content on Signal, through a running gateway to the model. */

import { beforeAll, test } from 'vitest';
import { textShown } from '../platforms/anthropic/wire.ts';
import { onePixel } from '../support/one-pixel.ts';
import { imagesIn, readAfter as readModelAfter } from './asking.ts';
import { countEvents, findBreaches } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type SignalSide, signalOf } from './signal-side.ts';
import { openStage, type Stage } from './stage.ts';

describeRow('on Signal', (atEnd) => {
  let stage: Stage;
  let signal: SignalSide;

  beforeAll(async () => {
    stage = await openStage({ networks: ['signal'] }, atEnd);
    signal = signalOf(stage);
    stage.model.script((_body, count) => ({ text: `Answer ${count}.` }));
    await stage.start();
  });

  const picture = () =>
    signal.server.world.addAttachment({ bytes: onePixel, fileName: 'dot.png', contentType: 'image/png' });

  const readAfter = (act: () => unknown) => readModelAfter(stage, act);

  test('shows the model a picture with its caption', async ({ expect }) => {
    const shown = picture();
    const attachments = [
      { contentType: 'image/png', filename: 'a.png', id: shown.id, size: onePixel.length, caption: 'my cat' },
    ];
    const from = signal.user(501);
    const body = await readAfter(() => signal.server.people.writes({ from, fields: { attachments } }));
    expect([imagesIn(body), textShown(body)]).toEqual([1, expect.stringContaining('my cat')]);
  });

  test('shows the model a view-once picture', async ({ expect }) => {
    const from = signal.user(502);
    const attachments = [picture()];
    const body = await readAfter(() =>
      signal.server.people.writes({ from, attachments, fields: { viewOnce: true } }),
    );
    expect(imagesIn(body)).toBe(1);
  });

  test('names the picture that a question quotes', async ({ expect }) => {
    const from = signal.user(503);
    const quote = {
      ...{ id: 1, author: from.uuid, authorUuid: from.uuid, text: '' },
      attachments: [{ contentType: 'image/jpeg', filename: 'holiday.jpg' }],
    };
    const body = await readAfter(() =>
      signal.server.people.writes({ from, text: 'what is on this picture?', fields: { quote } }),
    );
    expect(textShown(body)).toMatch(/quote from [\s\S]*holiday\.jpg/);
  });

  test('keeps the text of a quote whose author has no id', async ({ expect }) => {
    const from = signal.user(504);
    const quote = {
      ...{ id: 1, author: '+4915550002', authorNumber: '+4915550002', authorUuid: null },
      ...{ text: 'the offer of Monday', attachments: [] },
    };
    const body = await readAfter(() =>
      signal.server.people.writes({ from, text: 'this one?', fields: { quote } }),
    );
    expect(textShown(body)).toContain('the offer of Monday');
  });

  test('records a vote without starting a turn', async ({ expect }) => {
    const from = signal.user(505);
    const pollVote = {
      ...{ author: 'x', authorNumber: null, authorUuid: from.uuid, targetSentTimestamp: 1 },
      ...{ optionIndexes: [1], voteCount: 1 },
    };
    const [before, recorded] = [stage.model.requests.length, countEvents(stage.dataDir)];
    signal.server.people.writes({ from, fields: { message: null, pollVote } });
    await readAfter(() => signal.server.people.writes({ from, text: 'and now?' }));
    expect(stage.model.requests).toHaveLength(before + 1);
    expect(countEvents(stage.dataDir)).toBe(recorded + 2);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect(signal.server.refusals).toEqual([]);
  });
});
