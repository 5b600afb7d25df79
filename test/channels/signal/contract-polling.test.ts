import { channelContract } from '../channel-contract.ts';
import { aSignalHarness } from './signal-harness.ts';

// Apart from the others: every call waits until the poll before it has ended, as signal-cli runs once at a time.
channelContract('signal by polling', () => aSignalHarness('polling'));
