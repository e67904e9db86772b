import { Answers, type Call } from '@ambit/bus';
import { mcpBroker, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { ContentService } from './content.service.js';
import { OfferService } from './offer.service.js';

@Controller()
export class ContentHandlers {
  constructor(
    @Inject(OfferService) private readonly offers: OfferService,
    @Inject(ContentService) private readonly content: ContentService,
  ) {}

  @Answers(mcpBroker.listOffers) list(input: Parsed<typeof mcpBroker.listOffers>) {
    return this.offers.list(input);
  }
  @Answers(mcpBroker.getPrompt) prompt(input: Parsed<typeof mcpBroker.getPrompt>, call: Call) {
    return this.content.prompt(input, call);
  }
  @Answers(mcpBroker.readResource) read(input: Parsed<typeof mcpBroker.readResource>, call: Call) {
    return this.content.read(input, call);
  }
  @Answers(mcpBroker.completeArgument) complete(input: Parsed<typeof mcpBroker.completeArgument>, call: Call) {
    return this.content.complete(input, call);
  }
  @Answers(mcpBroker.subscribeResource) subscribe(input: Parsed<typeof mcpBroker.subscribeResource>, call: Call) {
    return this.content.subscribe(input, call);
  }
  @Answers(mcpBroker.unsubscribeResource) unsubscribe(input: Parsed<typeof mcpBroker.unsubscribeResource>, call: Call) {
    return this.content.unsubscribe(input, call);
  }
}
