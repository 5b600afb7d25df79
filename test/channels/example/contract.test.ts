import { channelContract } from '../channel-contract.ts';
import { anExampleNetwork } from './example-setup.ts';

channelContract('the example that pulls', () => anExampleNetwork('pull'));
channelContract('the example that is pushed to', () => anExampleNetwork('push'));
channelContract('the example that is called', () => anExampleNetwork('hook'));
