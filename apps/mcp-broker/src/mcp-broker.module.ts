import { Module } from '@nestjs/common';
import { AuditHandlers } from './audit.handlers.js';
import { CatalogueService } from './catalogue.service.js';
import { ContentHandlers } from './content.handlers.js';
import { ContentService } from './content.service.js';
import { DiscoveryService } from './discovery.service.js';
import { Epochs } from './epochs.js';
import { InstanceHandlers } from './instance.handlers.js';
import { InstanceService } from './instance.service.js';
import { KnownServers } from './known-servers.service.js';
import { OfferRepository } from './offer.repository.js';
import { OfferService } from './offer.service.js';
import { RunScopes } from './run-scope.service.js';
import { SecretHandlers } from './secret.handlers.js';
import { SecretRepository } from './secret.repository.js';
import { SecretResolver } from './secret.resolver.js';
import { SecretService } from './secret.service.js';
import { ServerHandlers } from './server.handlers.js';
import { ServerRepository } from './server.repository.js';
import { ServerService } from './server.service.js';

@Module({
  controllers: [AuditHandlers, ServerHandlers, SecretHandlers, InstanceHandlers, ContentHandlers],
  providers: [
    ServerService,
    ServerRepository,
    CatalogueService,
    InstanceService,
    KnownServers,
    DiscoveryService,
    Epochs,
    SecretService,
    SecretResolver,
    SecretRepository,
    OfferRepository,
    OfferService,
    RunScopes,
    ContentService,
  ],
})
export class McpBrokerModule {}
