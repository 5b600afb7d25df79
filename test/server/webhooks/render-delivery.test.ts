import { expect, it } from 'vitest';
import { renderDelivery } from '../../../src/server/webhooks/render-delivery.ts';
import { alertmanager, github } from './payloads.ts';

const render = (body: string, template?: string) => renderDelivery(Buffer.from(body), template);

it('fills a template with members of the body, of lists too', () => {
  const text =
    '{{status}}: {{alerts.0.labels.alertname}} on {{ alerts.*.labels.instance }}, {{nothing.here}}.';
  expect(render(alertmanager().body, text)).toBe('firing: DiskFull on db1:9100, .');
  expect(render(github().body, '{{workflow_run.id}} {{repository}}')).toBe(
    '30433642 {"full_name":"octo-org/octo-repo"}',
  );
});

it('never reads a template in what was reported, nor a member that the body does not have', () => {
  expect(render('{"a":"{{b}}","b":"secret"}', '{{a}}')).toBe('{{b}}');
  expect(render('{"a":{}}', '{{a.constructor}}{{a.__proto__}}{{__proto__.x}}')).toBe('');
});

it('shows the whole body without a template, whatever it is, up to a limit', () => {
  expect(render('{ "a": 1 }')).toBe('{ "a": 1 }');
  expect(render('not JSON')).toBe('not JSON');
  expect(render('not JSON', 'Said: {{a}}')).toBe('Said: ');
  expect(render('x'.repeat(20_000))).toMatch(/^x{16000}\n\[… shortened\]$/);
});

it('takes bodies that are nested deeply, or full of bytes that no text has', () => {
  const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  expect(render(deep)).toHaveLength(16_000 + '\n[… shortened]'.length);
  expect(render(deep, 'It is {{a}}').length).toBeLessThan(20_000);
  expect(render('a\u0000b')).not.toContain('\u0000');
  expect(renderDelivery(Buffer.from([0xff, 0xfe, 0x00, 0x61]), undefined).isWellFormed()).toBe(true);
});
