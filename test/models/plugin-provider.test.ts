import { expect, it } from 'vitest';
import type { LlmProvider } from '#contracts/model.ts';
import type { PluginProviderFactory } from '#contracts/plugin-parts.ts';
import { createPluginProvider } from '../../src/models/plugin-provider.ts';

const answering = (text: string): PluginProviderFactory => {
  return (model) => ({ send: async () => ({ text: `${text} ${model}` }) }) as unknown as LlmProvider;
};

it('calls the plugin that is loaded at the time of the call', async () => {
  let create: PluginProviderFactory | undefined;
  const provider = createPluginProvider('tides', 'moon', () => create);
  const send = () => provider.send({ messages: [] } as never, new AbortController().signal);
  await expect(send()).rejects.toThrow('No plugin provides the models of tides');
  create = answering('one');
  expect(await send()).toEqual({ text: 'one moon' });
  create = answering('two');
  expect(await send()).toEqual({ text: 'two moon' });
  create = undefined;
  await expect(send()).rejects.toThrow('No plugin provides the models of tides');
});
