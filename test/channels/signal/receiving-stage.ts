import { onTestFinished } from 'vitest';
import type { SignalAdapter } from '../../../channels/signal/adapter.ts';
import type { SignalServerOptions } from '../../platforms/signal/server.ts';
import type { RecordingIntake } from '../recording-intake.ts';
import { type AdapterOptions, aSignalStage, type SignalStage, type Way } from './signal-setup.ts';

const forever = new AbortController().signal;

/** Creates a stage whose adapters receive until the end of the test. */
export async function aReceivingStage(
  way: Way,
  options: Omit<SignalServerOptions, 'mode' | 'webhookUrl'> = {},
) {
  const stage = await aSignalStage(way, options);
  const adapters: SignalAdapter[] = [];
  onTestFinished(async () => {
    for (const adapter of adapters) await adapter.stop();
    await stage.close();
  });
  const begin = async (intake: RecordingIntake, adapterOptions: AdapterOptions = {}) => {
    const adapter = stage.newAdapter(adapterOptions);
    adapters.push(adapter);
    await adapter.identify(forever);
    await adapter.start(intake);
    return adapter;
  };
  return { ...stage, begin };
}

/** Says whether the server has answered a call whose path starts with `about`. */
export function isAsked({ calls }: SignalStage['server'], about: string): boolean {
  return calls.some(({ path, answered }) => path.startsWith(about) && answered);
}
