/**
 * Deliveries as systems send them, shortened from their public documentation: headers, body, and the secret with which
 * they are signed.
 */
import { createHmac } from 'node:crypto';

const hmac = (secret: string | Buffer, text: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', secret).update(text).digest(encoding);

export const secret = 'a-secret-of-the-test-0123456789';

export type SentDelivery = { readonly headers: Record<string, string>; readonly body: string };

/** https://prometheus.io/docs/alerting/latest/configuration/#webhook_config, with `authorization`. */
export const alertmanager = (status: 'firing' | 'resolved' = 'firing'): SentDelivery => ({
  headers: { authorization: `Bearer ${secret}`, 'user-agent': 'Alertmanager/0.28.1' },
  body: JSON.stringify({
    receiver: 'parley',
    status,
    alerts: [
      {
        status,
        labels: { alertname: 'DiskFull', instance: 'db1:9100', severity: 'critical' },
        annotations: { summary: 'The disk of db1 is 97 % full.' },
        startsAt: '2026-11-28T09:00:00Z',
        endsAt: '0001-01-01T00:00:00Z',
        generatorURL: 'http://prometheus:9090/graph?g0.expr=disk',
        fingerprint: '1f6a3f2c7c1b1b1d',
      },
    ],
    groupLabels: { alertname: 'DiskFull' },
    commonLabels: { alertname: 'DiskFull', severity: 'critical' },
    commonAnnotations: { summary: 'The disk of db1 is 97 % full.' },
    externalURL: 'http://alertmanager:9093',
    version: '4',
    groupKey: '{}:{alertname="DiskFull"}',
    truncatedAlerts: 0,
  }),
});

/** https://docs.github.com/en/webhooks/webhook-events-and-payloads#workflow_run */
export function github(event = 'workflow_run', own = secret): SentDelivery {
  const body = JSON.stringify({
    action: 'completed',
    workflow_run: {
      id: 30433642,
      name: 'Build',
      head_branch: 'main',
      conclusion: 'failure',
      html_url: 'https://github.com/octo-org/octo-repo/actions/runs/30433642',
    },
    repository: { full_name: 'octo-org/octo-repo' },
    sender: { login: 'octocat' },
  });
  return {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-github-event': event,
      'x-hub-signature-256': `sha256=${hmac(own, body)}`,
    },
    body,
  };
}

/** https://docs.stripe.com/webhooks#verify-manually; each attempt is signed anew. */
export function stripe(atS: number, pending = 1): SentDelivery {
  const body = JSON.stringify({
    id: 'evt_1NG8Du2eZvKYlo2CUI79vXWy',
    object: 'event',
    type: 'charge.dispute.created',
    pending_webhooks: pending,
    data: { object: { id: 'du_1MtJUT2eZvKYlo2CNaw2HvEv', amount: 1000, reason: 'general' } },
  });
  return {
    headers: {
      'stripe-signature': `t=${atS},v1=${hmac('another-secret', `${atS}.${body}`)},v1=${hmac(secret, `${atS}.${body}`)},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39`,
    },
    body,
  };
}

/** https://www.standardwebhooks.com, with the example key of its specification. */
export const standardSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const standard: SentDelivery = {
  headers: {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  },
  body: '{"test": 2432232314}',
};

/** https://grafana.com/docs/grafana/latest/alerting, contact point Webhook with HMAC and a timestamp header. */
export function grafana(atS?: number): SentDelivery {
  const body = JSON.stringify({
    receiver: 'parley',
    status: 'firing',
    orgId: 1,
    title: '[FIRING:1] High memory usage',
    message: '**Firing**\n\nValue: B=44.2, C=1',
    alerts: [{ status: 'firing', labels: { alertname: 'High memory usage' }, values: { B: 44.23, C: 1 } }],
  });
  const signature = hmac(secret, atS === undefined ? body : `${atS}:${body}`);
  return {
    headers: {
      'x-grafana-alerting-signature': signature,
      ...(atS !== undefined && { 'x-grafana-alerting-signature-timestamp': `${atS}` }),
    },
    body,
  };
}
