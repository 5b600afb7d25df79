/** Events in the shapes that Discord really sends, each with how Parley reads it. */
import { expect, it } from 'vitest';
import { ada, aScene } from '../../channels/discord/payloads.ts';
import { summarize } from '../read-input.ts';
import { changedOnly, editedAt } from './discord-input.ts';
import { inputs } from './inputs.ts';

it.each(inputs.map((input) => [input.name, input] as const))(
  'reads a Discord event as what it is: %s',
  (_, { dispatch: { t, d }, read }) => {
    const scene = aScene();
    scene.people.set(ada.id, ada);
    const result = scene.read(t, d);
    const events = result.kind === 'events' ? result.events : [];
    expect(['events', 'nothing']).toContain(result.kind);
    const { refused, ...rest } = read ?? {};
    const expected = {
      ...rest,
      ...(refused !== undefined && { refused: expect.stringMatching(`^${refused}`) }),
    };
    expect(events.map(({ event }) => summarize(event))).toEqual(read === undefined ? [] : [expected]);
  },
);

it.each([
  ['does not name its files', { content: 'good evening', edited_timestamp: editedAt }],
  [
    'names no file that can be read',
    { content: 'good evening', edited_timestamp: editedAt, attachments: [7] },
  ],
  ['does not name its words', { edited_timestamp: editedAt, attachments: [] }],
])('keeps the files of a Discord message after an edit that %s', (_, fields) => {
  const reading = aScene().read('MESSAGE_UPDATE', changedOnly(fields).d);
  const [envelope] = reading.kind === 'events' ? reading.events : [];
  expect(envelope?.event.kind).toBe('edit');
  expect(envelope?.event).not.toHaveProperty('attachments');
});
