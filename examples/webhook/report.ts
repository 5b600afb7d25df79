import { createHmac, randomUUID } from 'node:crypto';

// Reports something to a webhook of Parley as https://www.standardwebhooks.com says:
// "webhooks": { "backups": { "keyEnv": "BACKUPS_SECRET", "signature": "standard" } }
const { PARLEY_URL = 'http://127.0.0.1:7411', BACKUPS_SECRET: secret = '' } = process.env;
const body = JSON.stringify({ host: 'db1', state: 'failed', text: process.argv[2] ?? 'No space left.' });
const [id, at] = [`msg_${randomUUID()}`, `${Math.floor(Date.now() / 1000)}`];
const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
const signature = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
// The same id counts once, so the report may be repeated until it has an answer.
const answer = await fetch(`${PARLEY_URL}/webhooks/backups`, {
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    ...{ 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` },
  },
  body,
});
console.log(answer.status, await answer.text());
