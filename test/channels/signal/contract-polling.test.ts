import { channelContract } from '../channel-contract.ts';
import { aSignalHarness } from './signal-harness.ts';

// In its own file, because every call waits until the poll before it has ended: signal-cli runs once at a time.
channelContract('signal by polling', () => aSignalHarness('polling'));
