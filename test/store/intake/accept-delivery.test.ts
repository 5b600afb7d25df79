import { expect, it } from 'vitest';
import { acceptDelivery, type DeliveryInput } from '../../../src/store/intake/accept-delivery.ts';
import { aLane, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('deliveries to webhooks', (store) => {
  const aDelivery = (over: Partial<DeliveryInput> = {}): DeliveryInput => ({
    ...{ hook: 'alerts', delivery: unique('delivery') },
    lane: aLane(unique('hook')),
    item: {
      ...{ id: crypto.randomUUID(), source: 'api', reach: 'mode', target: 'record', authority: 'guest' },
      content: { text: 'hi', prompt: 'hi', sender: { id: 'x', name: 'X' }, sentAt: 1, attachments: [] },
    },
    ...over,
  });
  const accept = async (delivery: DeliveryInput) => (await store().write(acceptDelivery, delivery)).kind;
  const again = ({ hook, delivery, lane }: DeliveryInput, over: Partial<DeliveryInput> = {}) =>
    aDelivery({ hook, delivery, lane, ...over });

  it('stores one item for the attempts at a delivery, however many arrive at once', async () => {
    const first = aDelivery();
    const kinds = await Promise.all(Array.from({ length: 8 }, () => accept(again(first))));
    expect(kinds.filter((kind) => kind === 'accepted')).toHaveLength(1);
    expect(await accept(again(first))).toBe('repeated');
    expect(await accept(again(first, { hook: 'builds' }))).toBe('accepted');
  });

  it('takes the same report again once its window is over, once', async () => {
    const first = aDelivery({ repeatMs: 60_000 });
    expect(await accept(first)).toBe('accepted');
    expect(await accept(again(first, { repeatMs: 60_000 }))).toBe('repeated');
    // A window that is over at once.
    const late = await Promise.all(
      Array.from({ length: 4 }, () => accept(again(first, { repeatMs: -1_000 }))),
    );
    expect(late).toContain('accepted');
    expect(await accept(again(first))).toBe('repeated');
  });
});
