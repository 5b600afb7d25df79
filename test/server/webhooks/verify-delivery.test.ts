import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Signature, verifyDelivery } from '../../../src/server/webhooks/verify-delivery.ts';
import { budget, holds } from '../../support/holds.ts';
import {
  alertmanager,
  github,
  grafana,
  type SentDelivery,
  secret,
  standard,
  standardSecret,
  stripe,
} from './payloads.ts';

const now = 1_795_900_000_000;
const nowS = now / 1000;

function judge(signature: Signature, { headers, body }: SentDelivery, own = secret, at = now) {
  return verifyDelivery(signature, own, { headers, body: Buffer.from(body), now: at });
}

const wrong = { kind: 'refused', reason: 'wrong_secret' };
const old = { kind: 'refused', reason: 'too_old' };

const genuine: readonly (readonly [Signature, SentDelivery])[] = [
  ['none', alertmanager()],
  ['github', github()],
  ['stripe', stripe(nowS)],
  ['grafana', grafana()],
  ['grafana', grafana(nowS)],
];

describe('a delivery to a webhook', () => {
  it.each(genuine)('accepts a delivery that is signed as %s does', (signature, sent) => {
    expect(judge(signature, sent)).toMatchObject({ kind: 'genuine' });
  });

  it('fits the examples that GitHub and Standard Webhooks publish', () => {
    const published = {
      headers: {
        'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      },
      body: 'Hello, World!',
    };
    expect(judge('github', published, "It's a Secret to Everybody")).toMatchObject({ kind: 'genuine' });
    expect(judge('standard', standard, standardSecret, 1_614_265_330_000)).toEqual({
      ...{ kind: 'genuine', id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', mayRecur: false },
    });
  });

  it.each(genuine)(
    'refuses a delivery with another secret, another body or no proof: %s',
    (signature, sent) => {
      expect(judge(signature, sent, 'another-secret-0123456789')).toEqual(wrong);
      if (signature !== 'none') expect(judge(signature, { ...sent, body: `${sent.body} ` })).toEqual(wrong);
      expect(judge(signature, { ...sent, headers: {} })).toEqual(wrong);
    },
  );

  it.each(['none', 'github', 'stripe', 'standard', 'grafana'] as const)(
    'refuses headers that prove nothing: %s',
    (signature) => {
      const values = [
        '',
        ' ',
        '=',
        'sha256=',
        'v1,',
        't=,v1=',
        't=1,v1=00',
        'Basic Og==',
        'Bearer ',
        'a'.repeat(9000),
      ];
      const names = [
        ...['authorization', 'x-webhook-secret', 'x-gitlab-token', 'x-hub-signature-256', 'stripe-signature'],
        ...['webhook-id', 'webhook-timestamp', 'webhook-signature', 'x-grafana-alerting-signature'],
      ];
      for (const value of values) {
        const headers = Object.fromEntries(names.map((name) => [name, value]));
        expect(judge(signature, { headers, body: '{}' })).toEqual(wrong);
      }
    },
  );

  it('takes a secret as bearer token, basic password or header', () => {
    const basic = Buffer.from(`anybody:${secret}`).toString('base64');
    const ways: readonly Record<string, string>[] = [
      { authorization: `Bearer ${secret}` },
      { authorization: `Basic ${basic}` },
      { 'x-webhook-secret': secret },
      { 'x-gitlab-token': secret },
    ];
    for (const headers of ways)
      expect(judge('none', { headers, body: '{}' })).toMatchObject({ kind: 'genuine', mayRecur: true });
  });

  it('refuses a delivery outside of its window if its time is signed', () => {
    for (const at of [nowS - 301, nowS + 301]) {
      expect(judge('stripe', stripe(at))).toEqual(old);
      expect(judge('grafana', grafana(at))).toEqual(old);
    }
    expect(judge('stripe', stripe(nowS - 299))).toMatchObject({ kind: 'genuine' });
    expect(judge('standard', standard, standardSecret)).toEqual(old);
    // Without its header, a time that was signed can't be left out.
    const { 'x-grafana-alerting-signature-timestamp': _, ...headers } = grafana(nowS).headers;
    expect(judge('grafana', { headers, body: grafana(nowS).body })).toEqual(wrong);
  });

  it('gives each attempt the same id, which an unsigned header cannot change', () => {
    const idOf = (verdict: ReturnType<typeof judge>) => (verdict.kind === 'genuine' ? verdict.id : undefined);
    expect(idOf(judge('stripe', stripe(nowS - 60, 2)))).toBe(idOf(judge('stripe', stripe(nowS, 1))));
    const again = { ...github(), headers: { ...github().headers, 'x-github-delivery': 'another' } };
    expect(idOf(judge('github', again))).toBe(idOf(judge('github', github())));
    expect(idOf(judge('none', alertmanager()))).not.toBe(idOf(judge('none', alertmanager('resolved'))));
    const keyed = { ...alertmanager(), headers: { ...alertmanager().headers, 'idempotency-key': 'key-1' } };
    expect(judge('none', keyed)).toEqual({ kind: 'genuine', id: 'key-1', mayRecur: false });
  });

  it('refuses any headers and body that were not made with the secret', () => {
    const names = [
      ...['authorization', 'x-webhook-secret', 'x-gitlab-token', 'x-hub-signature-256', 'stripe-signature'],
      ...['webhook-id', 'webhook-timestamp', 'webhook-signature', 'x-grafana-alerting-signature'],
      'x-grafana-alerting-signature-timestamp',
    ];
    const value = fc.oneof(
      fc.string(),
      fc.base64String(),
      fc.constantFrom('v1,', `t=${nowS},v1=`, 'sha256='),
    );
    const headers = fc.dictionary(fc.constantFrom(...names), value);
    const signature = fc.constantFrom<Signature>('none', 'github', 'stripe', 'standard', 'grafana');
    holds(
      fc.property(signature, headers, fc.string(), (kind, given, body) => {
        expect(judge(kind, { headers: given, body }).kind).toBe('refused');
      }),
      budget(20_000),
    );
  });
});
