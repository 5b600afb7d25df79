import { randomBytes } from 'node:crypto';
import type { ChannelSetUp } from '#contracts/channel.ts';

export const setUp: ChannelSetUp = {
  label: 'Signal',
  hint: 'needs signal-cli-rest-api',
  how: 'Parley reaches Signal through signal-cli-rest-api, a server that you run yourself (step by step: docs/signal.md).',
  fields: [
    { variable: 'SIGNAL_API_URL', question: 'Its address', byDefault: 'http://127.0.0.1:8080' },
    { variable: 'SIGNAL_NUMBER', question: 'Phone number of the account, +49… (empty: the only one it has)' },
    { variable: 'SIGNAL_WEBHOOK_SECRET', make: () => randomBytes(24).toString('hex') },
  ],
  ownerId: {
    example: '0d1e2f3a-4b5c-6d7e-8f90-a1b2c3d4e5f6',
    form: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i,
  },
};
