"""Pages as content systems, shop themes, plug-ins and search engines' own guides write them: none has a defect.

`SLIPS` are mistakes that a person makes in them: the text that is replaced, what stands there instead, and the code
that must be found on its line.
"""
# ruff: noqa: E501

from __future__ import annotations

from typing import NamedTuple

from quadloom_lab.audit.foreign_pages import ForeignPage, html_page, jsonld_page, turtle_page


class Slip(NamedTuple):
    page: str
    right: str
    wrong: str
    code: str


PUBLISHED: list[ForeignPage] = [
    jsonld_page(
        "blog of a content system",
        """{"@context":"https://schema.org","@graph":[
{"@type":"Article","@id":"https://blog.example/sourdough/#article",
"isPartOf":{"@id":"https://blog.example/sourdough/"},
"author":{"name":"Mira Holt","@id":"https://blog.example/#/schema/person/9f2c"},
"headline":"Sourdough in winter",
"datePublished":"2025-11-02T07:30:00+00:00",
"dateModified":"2025-11-03T18:02:11+00:00",
"mainEntityOfPage":{"@id":"https://blog.example/sourdough/"},
"wordCount":1042,
"commentCount":3,
"publisher":{"@id":"https://blog.example/#organization"},
"image":{"@id":"https://blog.example/sourdough/#primaryimage"},
"thumbnailUrl":"https://blog.example/wp-content/uploads/loaf.jpg",
"keywords":["bread","winter"],
"articleSection":["Baking"],
"inLanguage":"en-US",
"potentialAction":[{"@type":"CommentAction","name":"Comment","target":["https://blog.example/sourdough/#respond"]}]},
{"@type":"WebPage","@id":"https://blog.example/sourdough/","url":"https://blog.example/sourdough/","name":"Sourdough in winter - Blog",
"isPartOf":{"@id":"https://blog.example/#website"},
"primaryImageOfPage":{"@id":"https://blog.example/sourdough/#primaryimage"},
"image":{"@id":"https://blog.example/sourdough/#primaryimage"},
"datePublished":"2025-11-02T07:30:00+00:00","breadcrumb":{"@id":"https://blog.example/sourdough/#breadcrumb"},
"inLanguage":"en-US","potentialAction":[{"@type":"ReadAction","target":["https://blog.example/sourdough/"]}]},
{"@type":"ImageObject","inLanguage":"en-US","@id":"https://blog.example/sourdough/#primaryimage",
"url":"https://blog.example/wp-content/uploads/loaf.jpg","contentUrl":"https://blog.example/wp-content/uploads/loaf.jpg","width":1200,"height":800,"caption":"A loaf"},
{"@type":"BreadcrumbList","@id":"https://blog.example/sourdough/#breadcrumb","itemListElement":[
{"@type":"ListItem","position":1,"name":"Home","item":"https://blog.example/"},{"@type":"ListItem","position":2,"name":"Sourdough in winter"}]},
{"@type":"WebSite","@id":"https://blog.example/#website","url":"https://blog.example/","name":"Blog","description":"Bread",
"publisher":{"@id":"https://blog.example/#organization"},
"potentialAction":[{"@type":"SearchAction","target":{"@type":"EntryPoint","urlTemplate":"https://blog.example/?s={search_term_string}"},
"query-input":{"@type":"PropertyValueSpecification","valueRequired":true,"valueName":"search_term_string"}}],"inLanguage":"en-US"},
{"@type":["Organization","Brand"],"@id":"https://blog.example/#organization","name":"Blog","url":"https://blog.example/",
"logo":{"@type":"ImageObject","inLanguage":"en-US","@id":"https://blog.example/#/schema/logo/image/","url":"https://blog.example/logo.png","contentUrl":"https://blog.example/logo.png","width":512,"height":512,"caption":"Blog"},
"image":{"@id":"https://blog.example/#/schema/logo/image/"},"sameAs":["https://social.example/blog"]},
{"@type":"Person","@id":"https://blog.example/#/schema/person/9f2c","name":"Mira Holt",
"image":{"@type":"ImageObject","inLanguage":"en-US","@id":"https://blog.example/#/schema/person/image/","url":"https://avatar.example/1?s=96","contentUrl":"https://avatar.example/1?s=96","caption":"Mira Holt"},
"description":"Bakes.","sameAs":["https://blog.example"],"url":"https://blog.example/author/mira/"}]}""",
    ),
    html_page(
        "shop theme in microdata",
        """
<div itemscope itemtype="http://schema.org/Product">
 <meta itemprop="url" content="https://store.example/products/mug">
 <meta itemprop="image" content="//cdn.store.example/s/files/1/mug_grande.jpg?v=1571">
 <h1 itemprop="name">Stoneware mug</h1>
 <p itemprop="brand" itemscope itemtype="http://schema.org/Brand"><span itemprop="name">Kiln</span></p>
 <div itemprop="offers" itemscope itemtype="http://schema.org/Offer">
  <meta itemprop="priceCurrency" content="EUR">
  <link itemprop="availability" href="http://schema.org/InStock">
  <link itemprop="itemCondition" href="http://schema.org/NewCondition">
  <span itemprop="price" content="24.00">€24.00</span>
  <meta itemprop="priceValidUntil" content="2027-01-01">
  <div itemprop="shippingDetails" itemscope itemtype="http://schema.org/OfferShippingDetails">
   <div itemprop="shippingRate" itemscope itemtype="http://schema.org/MonetaryAmount"><meta itemprop="value" content="4.90"><meta itemprop="currency" content="EUR"></div>
  </div>
 </div>
 <div itemprop="description"><p>Holds <b>350 ml</b>.</p></div>
 <meta itemprop="sku" content="MUG-1"><meta itemprop="gtin13" content="4006381333931">
 <div itemprop="aggregateRating" itemscope itemtype="http://schema.org/AggregateRating">
  <span itemprop="ratingValue">4.7</span> of <span itemprop="bestRating">5</span> by <span itemprop="reviewCount">31</span></div>
 <div itemprop="weight" itemscope itemtype="http://schema.org/QuantitativeValue"><meta itemprop="value" content="0.4"><meta itemprop="unitCode" content="KGM"></div>
</div>""",
    ),
    html_page(
        "node of a content system in RDFa",
        """
<article about="/node/17" typeof="schema:Article" prefix="schema: http://schema.org/ content: http://purl.org/rss/1.0/modules/content/ dc: http://purl.org/dc/terms/ foaf: http://xmlns.com/foaf/0.1/ og: http://ogp.me/ns# rdfs: http://www.w3.org/2000/01/rdf-schema# sioc: http://rdfs.org/sioc/ns# sioct: http://rdfs.org/sioc/types# skos: http://www.w3.org/2004/02/skos/core# xsd: http://www.w3.org/2001/XMLSchema#">
 <h2><a href="/node/17" rel="bookmark"><span property="schema:name">Harbour opened</span></a></h2>
 <span property="schema:name" content="Harbour opened" class="hidden"></span>
 <span property="schema:interactionCount" content="UserComments:0" class="hidden"></span>
 <span rel="schema:author"><a lang="" about="/user/1" typeof="schema:Person" property="schema:name" datatype="">admin</a></span>
 <span property="schema:dateCreated" content="2025-06-01T10:00:00+00:00">Sun, 06/01/2025</span>
 <div property="schema:text"><p>The harbour was opened.</p></div>
 <div rel="schema:image"><img typeof="foaf:Image" src="/files/harbour.jpg" alt="Harbour"></div>
 <a href="/tags/sea" property="schema:keywords" typeof="skos:Concept" resource="/tags/sea">sea</a>
 <span about="/node/17#c1" typeof="schema:Comment"><span property="schema:text">Good.</span> <span property="schema:dateCreated" content="2025-06-02T09:00:00+00:00"></span></span>
</article>""",
    ),
    html_page(
        "RDFa lite with vocab",
        """
<div vocab="https://schema.org/" typeof="LocalBusiness">
 <h1 property="name">Corner bakery</h1>
 <img property="image" src="https://bakery.example/shop.jpg" alt="">
 <div property="address" typeof="PostalAddress"><span property="streetAddress">1 Mill Lane</span>, <span property="postalCode">SW1A 1AA</span>
  <span property="addressLocality">London</span> <span property="addressCountry">GB</span></div>
 <span property="telephone">+44 20 7946 0000</span>
 <time property="openingHours" datetime="Mo-Fr 08:00-18:00">8 to 6</time>
 <div property="openingHoursSpecification" typeof="OpeningHoursSpecification"><link property="dayOfWeek" href="https://schema.org/Saturday"><time property="opens" content="09:00">9</time><time property="closes" content="13:00:00">1</time></div>
 <span property="priceRange">££</span>
 <div property="geo" typeof="GeoCoordinates"><meta property="latitude" content="51.5"><meta property="longitude" content="-0.12"></div>
 <a property="hasMap" href="https://maps.example/?q=bakery">map</a>
 <span property="paymentAccepted">Cash, Credit Card</span><span property="currenciesAccepted">GBP, EUR</span>
</div>""",
    ),
    jsonld_page(
        "context as an object with vocab",
        """{"@context": {"@vocab": "http://schema.org/", "ex": "https://ex.example/ns#"}, "@type": "Event", "name": "Fair", "startDate": "2026-06-01T10:00", "endDate": "2026-06-02",
 "eventStatus": {"@id": "http://schema.org/EventScheduled"}, "eventAttendanceMode": "OfflineEventAttendanceMode",
 "location": {"@type": "Place", "name": "Hall", "address": "Square 1, Graz"}, "ex:stand": "12"}""",
    ),
    jsonld_page(
        "context as a list with a base and language",
        """{"@context": ["https://schema.org/", {"@language": "de", "@base": "https://museum.example/"}], "@type": ["Museum", "TouristAttraction"], "@id": "haus", "name": "Haus der Stille",
 "availableLanguage": ["de", {"@type": "Language", "name": "English", "alternateName": "en"}], "isAccessibleForFree": "True", "publicAccess": true,
 "touristType": [{"@type": "Audience", "audienceType": "Families"}], "hasMap": "https://museum.example/karte", "geo": {"@type": "GeoShape", "box": "47.0 15.4 47.1 15.5"}, "maximumAttendeeCapacity": "200", "smokingAllowed": "false"}""",
    ),
    jsonld_page(
        "http with trailing slash and several top items",
        """[{"@context": "http://schema.org/", "@type": "Organization", "url": "http://www.yard.example/", "logo": "http://www.yard.example/l.png", "contactPoint": [{"@type": "ContactPoint", "telephone": "+1-401-555-1212", "contactType": "customer service", "contactOption": "TollFree", "areaServed": ["US", "CA"], "availableLanguage": ["English", "French"], "hoursAvailable": {"@type": "OpeningHoursSpecification", "opens": "08:00", "closes": "17:00", "dayOfWeek": ["Monday", "Tuesday", "http://schema.org/Friday"]}}],
  "numberOfEmployees": {"@type": "QuantitativeValue", "minValue": 10, "maxValue": 50}, "foundingDate": "1987-03", "duns": "060704780", "vatID": "ATU12345675", "iso6523Code": "0199:724500PMK2A2M1SQQ228", "legalName": "Yard Inc.", "naics": "441110"},
 {"@context": "http://schema.org/", "@type": "WebSite", "url": "http://www.yard.example/", "name": "Yard", "alternateName": ["The Yard", "YARD"]}]""",
    ),
    jsonld_page(
        "language maps and values with a language",
        """{"@context": ["https://schema.org", {"name": {"@id": "schema:name", "@container": "@language"}, "schema": "https://schema.org/"}], "@type": "Book", "name": {"en": "The tide", "fr": "La marée"}, "isbn": "9783161484100", "bookFormat": "https://schema.org/EBook",
  "author": [{"@type": "Person", "name": {"en": "N. Bell"}}], "workExample": {"@type": "Book", "isbn": "978-3-16-148410-0", "bookFormat": "Paperback", "bookEdition": "2nd", "datePublished": "2011", "potentialAction": {"@type": "ReadAction", "target": {"@type": "EntryPoint", "urlTemplate": "https://books.example/read/1", "actionPlatform": ["https://schema.org/DesktopWebPlatform", "http://schema.org/AndroidPlatform"]}, "expectsAcceptanceOf": {"@type": "Offer", "price": 0, "priceCurrency": "USD", "eligibleRegion": {"@type": "Country", "name": "US"}, "availabilityStarts": "2020-01-01T00:00:00Z"}}}}""",
    ),
    jsonld_page(
        "recipe of a plug-in",
        """{"@context":"http:\\/\\/schema.org\\/","@type":"Recipe","name":"Lentil soup","author":{"@type":"Person","name":"Ines"},"description":"Warm.","datePublished":"2024-12-20T08:00:58+00:00","image":["https:\\/\\/food.example\\/soup.jpg","https:\\/\\/food.example\\/soup-500x500.jpg"],"video":{"@type":"VideoObject","name":"Soup","description":"How","uploadDate":"2024-12-20T08:00:58.000Z","duration":"PT1M2S","thumbnailUrl":["https:\\/\\/food.example\\/v.jpg"],"contentUrl":"https:\\/\\/food.example\\/v.mp4","embedUrl":"https:\\/\\/video.example\\/embed\\/x"},"recipeYield":["4","4 bowls"],"prepTime":"PT15M","cookTime":"PT40M","totalTime":"PT55M","recipeIngredient":["200 g lentils","1 onion"],"recipeInstructions":[{"@type":"HowToSection","name":"Base","itemListElement":[{"@type":"HowToStep","text":"Chop.","name":"Chop.","url":"https:\\/\\/food.example\\/soup\\/#step-0-0","image":"https:\\/\\/food.example\\/s.jpg"}]},{"@type":"HowToStep","text":"Boil.","itemListElement":[{"@type":"HowToDirection","text":"Boil."},{"@type":"HowToTip","text":"Salt late."}]}],"aggregateRating":{"@type":"AggregateRating","ratingValue":"4.91","ratingCount":"57","reviewCount":"20"},"recipeCategory":["Soup"],"recipeCuisine":["Levantine"],"suitableForDiet":["https:\\/\\/schema.org\\/VeganDiet","http:\\/\\/schema.org\\/GlutenFreeDiet"],"nutrition":{"@type":"NutritionInformation","calories":"310 kcal","carbohydrateContent":"45 g","servingSize":"1 serving"},"keywords":"soup, lentil","@id":"https:\\/\\/food.example\\/soup\\/#recipe","isPartOf":{"@id":"https:\\/\\/food.example\\/soup\\/"},"tool":[{"@type":"HowToTool","name":"Pot"}],"estimatedCost":{"@type":"MonetaryAmount","currency":"EUR","value":"5"}}""",
    ),
    jsonld_page(
        "job with ranges",
        """{"@context": "https://schema.org/", "@type": "JobPosting", "title": "Weaver", "description": "<p>Weaves.</p>", "datePosted": "2026-01-18", "validThrough": "2026-03-18T00:00", "employmentType": ["FULL_TIME", "CONTRACTOR"],
 "identifier": {"@type": "PropertyValue", "name": "Mill", "value": "1234567"}, "hiringOrganization": {"@type": "Organization", "name": "Mill", "sameAs": "https://mill.example", "logo": "https://mill.example/logo.png"},
 "jobLocation": {"@type": "Place", "address": {"@type": "PostalAddress", "streetAddress": "1 Way", "addressLocality": "Leeds", "addressRegion": "W Yorks", "postalCode": "LS1", "addressCountry": "GB"}}, "jobLocationType": "TELECOMMUTE", "applicantLocationRequirements": [{"@type": "Country", "name": "GB"}, {"@type": "State", "name": "Ohio, USA"}],
 "baseSalary": {"@type": "MonetaryAmount", "currency": "GBP", "value": {"@type": "QuantitativeValue", "minValue": 30.5, "maxValue": "40", "unitText": "HOUR"}}, "directApply": true, "educationRequirements": {"@type": "EducationalOccupationalCredential", "credentialCategory": "bachelor degree"}, "experienceRequirements": {"@type": "OccupationalExperienceRequirements", "monthsOfExperience": "60"}, "experienceInPlaceOfEducation": "True", "industry": "Textile", "occupationalCategory": "15-1132.00", "workHours": "8am-5pm", "jobBenefits": "Tea"}""",
    ),
    jsonld_page(
        "product with property values, variants and shipping",
        """{"@context": "https://schema.org/", "@type": "ProductGroup", "@id": "#coat", "name": "Coat", "productGroupID": "44E01", "variesBy": ["https://schema.org/size", "https://schema.org/color"], "brand": {"@type": "Brand", "name": "Loom"}, "audience": {"@type": "PeopleAudience", "suggestedGender": "unisex", "suggestedAge": {"@type": "QuantitativeValue", "minValue": 13, "unitCode": "ANN"}},
 "hasVariant": [{"@type": "Product", "sku": "44E01-M", "name": "Coat, M", "image": "https://loom.example/coat.jpg", "size": {"@type": "SizeSpecification", "name": "M", "sizeGroup": "https://schema.org/WearableSizeGroupRegular", "sizeSystem": "https://schema.org/WearableSizeSystemEurope"}, "color": "green", "material": "wool", "isVariantOf": {"@id": "#coat"}, "inProductGroupWithID": "44E01", "mpn": "925872", "gtin": "4006381333931",
  "additionalProperty": [{"@type": "PropertyValue", "propertyID": "EAN", "name": "Lining", "value": true, "unitText": "yes/no"}, {"@type": "PropertyValue", "name": "weight", "value": 1.2, "unitCode": "KGM"}],
  "offers": {"@type": "Offer", "url": "https://loom.example/coat?size=m", "priceCurrency": "USD", "price": 119.99, "priceSpecification": [{"@type": "UnitPriceSpecification", "price": 150, "priceCurrency": "USD", "priceType": "https://schema.org/StrikethroughPrice"}], "availability": "https://schema.org/BackOrder", "itemCondition": "https://schema.org/NewCondition", "shippingDetails": {"@type": "OfferShippingDetails", "shippingRate": {"@type": "MonetaryAmount", "value": 3.49, "currency": "USD"}, "shippingDestination": {"@type": "DefinedRegion", "addressCountry": "US", "addressRegion": ["CA", "NV"]}, "deliveryTime": {"@type": "ShippingDeliveryTime", "handlingTime": {"@type": "QuantitativeValue", "minValue": 0, "maxValue": 1, "unitCode": "DAY"}, "transitTime": {"@type": "QuantitativeValue", "minValue": 1, "maxValue": 5, "unitCode": "DAY"}}}, "seller": {"@type": "Organization", "name": "Loom"}, "hasMerchantReturnPolicy": {"@type": "MerchantReturnPolicy", "applicableCountry": ["DE", "AT"], "returnPolicyCountry": "DE", "returnPolicyCategory": "https://schema.org/MerchantReturnFiniteReturnWindow", "merchantReturnDays": 60, "returnMethod": "https://schema.org/ReturnByMail", "returnFees": "https://schema.org/FreeReturn", "refundType": "https://schema.org/FullRefund"}}}],
 "hasCertification": {"@type": "Certification", "issuedBy": {"@type": "Organization", "name": "European_Commission"}, "name": "EPREL", "certificationIdentification": "123456"}, "hasEnergyConsumptionDetails": {"@type": "EnergyConsumptionDetails", "hasEnergyEfficiencyCategory": "https://schema.org/EUEnergyEfficiencyCategoryD", "energyEfficiencyScaleMin": "https://schema.org/EUEnergyEfficiencyCategoryG"}}""",
    ),
    html_page(
        "items joined by itemref",
        """
<div id="rating" itemprop="aggregateRating" itemscope itemtype="https://schema.org/AggregateRating"><span itemprop="ratingValue">8.1</span>/<span itemprop="bestRating">10</span> (<span itemprop="ratingCount">77</span>)</div>
<p id="maker" itemprop="director" itemscope itemtype="https://schema.org/Person"><span itemprop="name">P. Aro</span> <time itemprop="birthDate" datetime="1960-02-29">1960</time></p>
<div itemscope itemtype="https://schema.org/Movie" itemref="rating maker">
 <h1 itemprop="name">Slow river</h1> <time itemprop="duration" datetime="PT1H47M">107 min</time>
 <img itemprop="image" src="poster.jpg" alt=""><span itemprop="contentRating">PG-13</span>
 <span itemprop="countryOfOrigin" itemscope itemtype="https://schema.org/Country"><span itemprop="name">Finland</span></span>
 <a itemprop="trailer" itemscope itemtype="https://schema.org/VideoObject" href="/t"><meta itemprop="name" content="Trailer"><meta itemprop="thumbnailUrl" content="/t.jpg"><meta itemprop="uploadDate" content="2024-01-01"><meta itemprop="description" content="A trailer"></a>
 <span itemprop="genre">Drama</span><link itemprop="sameAs" href="https://films.example/slow">
</div>""",
    ),
    html_page(
        "forum posting with interaction counters",
        """
<div itemscope itemtype="https://schema.org/DiscussionForumPosting"><link itemprop="mainEntityOfPage" href="https://forum.example/t/1">
 <h1 itemprop="headline">Which loom?</h1><meta itemprop="datePublished" content="2025-02-03T04:05:06Z"><div itemprop="text">I want one.</div>
 <span itemprop="author" itemscope itemtype="https://schema.org/Person"><a itemprop="url" href="https://forum.example/u/kai"><span itemprop="name">kai</span></a></span>
 <div itemprop="interactionStatistic" itemscope itemtype="https://schema.org/InteractionCounter"><meta itemprop="interactionType" content="https://schema.org/LikeAction"><meta itemprop="userInteractionCount" content="12"></div>
 <div itemprop="comment" itemscope itemtype="https://schema.org/Comment"><div itemprop="text">A small one.</div><meta itemprop="dateCreated" content="2025-02-03"><span itemprop="author" itemscope itemtype="https://schema.org/Person"><span itemprop="name">ro</span></span><meta itemprop="upvoteCount" content="3"></div>
</div>""",
    ),
    jsonld_page(
        "course, questions and a claim",
        """{"@context": "https://schema.org", "@graph": [
 {"@type": "Course", "name": "Weaving 1", "description": "Begin.", "provider": {"@type": "CollegeOrUniversity", "name": "Craft College", "sameAs": "https://craft.example"}, "hasCourseInstance": [{"@type": "CourseInstance", "courseMode": ["onsite", "Online"], "courseWorkload": "PT22H", "courseSchedule": {"@type": "Schedule", "duration": "PT3H", "repeatFrequency": "P1W", "repeatCount": 31, "startDate": "2025-09-01", "endDate": "2026-05-31", "byDay": "https://schema.org/Monday", "scheduleTimezone": "Europe/Vienna"}, "instructor": [{"@type": "Person", "name": "Ula"}]}], "offers": [{"@type": "Offer", "category": "Paid", "priceCurrency": "EUR", "price": 120}], "educationalLevel": "Advanced", "coursePrerequisites": ["Basic knots", {"@type": "AlignmentObject", "targetName": "Knots"}], "totalHistoricalEnrollment": 12014, "educationalCredentialAwarded": [{"@type": "EducationalOccupationalCredential", "name": "Certificate", "credentialCategory": "Certificate", "offers": [{"@type": "Offer", "category": "Paid", "price": 5, "priceCurrency": "EUR"}]}]},
 {"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "How long?", "acceptedAnswer": {"@type": "Answer", "text": "A year."}}]},
 {"@type": "QAPage", "mainEntity": {"@type": "Question", "name": "Why?", "text": "Why weave?", "answerCount": 1, "upvoteCount": 26, "dateCreated": "2024-07-23T21:11Z", "author": {"@type": "Person", "name": "K"}, "suggestedAnswer": [{"@type": "Answer", "text": "Joy.", "upvoteCount": 4, "url": "https://qa.example/1#a"}]}},
 {"@type": "ClaimReview", "url": "https://facts.example/1", "claimReviewed": "The sea is dry", "itemReviewed": {"@type": "Claim", "author": {"@type": "Organization", "name": "Sea"}, "datePublished": "2016-06-20", "appearance": {"@type": "CreativeWork", "url": "https://sea.example/dry"}}, "author": {"@type": "Organization", "name": "Facts"}, "reviewRating": {"@type": "Rating", "ratingValue": 1, "bestRating": 5, "worstRating": 1, "alternateName": "False"}},
 {"@type": "Quiz", "about": {"@type": "Thing", "name": "Knots"}, "educationalAlignment": [{"@type": "AlignmentObject", "alignmentType": "educationalSubject", "targetName": "Craft"}], "hasPart": [{"@type": "Question", "eduQuestionType": "Flashcard", "text": "A knot?", "acceptedAnswer": {"@type": "Answer", "text": "Reef."}}]},
 {"@type": "MathSolver", "name": "Sums", "url": "https://math.example/", "usageInfo": "https://math.example/privacy", "inLanguage": "en", "potentialAction": [{"@type": "SolveMathAction", "target": "https://math.example/solve?q={math_expression_string}", "mathExpression-input": "required name=math_expression_string", "eduQuestionType": ["Polynomial Equation"]}], "learningResourceType": "Math solver"}]}""",
    ),
    jsonld_page(
        "video, podcast, software, dataset",
        """{"@context": "https://schema.org/", "@graph": [
 {"@type": "VideoObject", "name": "Tide", "description": "Sea.", "thumbnailUrl": ["https://v.example/1.jpg"], "uploadDate": "2024-03-31T08:00:00+08:00", "duration": "PT1M54S", "contentUrl": "https://v.example/1.mp4", "embedUrl": "https://v.example/e/1", "interactionStatistic": {"@type": "InteractionCounter", "interactionType": {"@type": "WatchAction"}, "userInteractionCount": 5647018}, "regionsAllowed": ["US", "NL"], "hasPart": [{"@type": "Clip", "name": "Intro", "startOffset": 30, "endOffset": 45, "url": "https://v.example/1?t=30"}], "publication": {"@type": "BroadcastEvent", "isLiveBroadcast": true, "startDate": "2018-10-27T14:00:00+00:00", "endDate": "2018-10-27T14:37:14+00:00"}},
 {"@type": "PodcastEpisode", "name": "One", "datePublished": "2024-01-01", "timeRequired": "PT37M", "associatedMedia": {"@type": "MediaObject", "contentUrl": "https://p.example/1.mp3"}, "partOfSeries": {"@type": "PodcastSeries", "name": "Pod", "url": "https://p.example/", "webFeed": "https://p.example/feed"}},
 {"@type": ["SoftwareApplication", "MobileApplication"], "name": "Knit", "operatingSystem": "ANDROID", "applicationCategory": "GameApplication", "aggregateRating": {"@type": "AggregateRating", "ratingValue": 4.6, "ratingCount": 8864}, "offers": {"@type": "Offer", "price": 0}, "fileSize": "12 MB", "softwareVersion": "1.2", "featureList": "Fast"},
 {"@type": "Dataset", "name": "Storms", "description": "Storm data for fifty years, from many stations along the coast, by day.", "url": "https://data.example/storms", "sameAs": "https://geo.example/ABC", "identifier": ["https://doi.org/10.1000/182", "https://identifiers.org/ark:/12345/fk1234"], "keywords": ["ATMOSPHERE > WIND"], "license": "https://creativecommons.org/publicdomain/zero/1.0/", "isAccessibleForFree": true, "creator": {"@type": "Organization", "url": "https://data.example/", "name": "Centre", "contactPoint": {"@type": "ContactPoint", "contactType": "customer service", "telephone": "+1-828-271-4800", "email": "help@data.example"}}, "funder": {"@type": "Organization", "sameAs": "https://ror.org/00tgqzw13", "name": "Service"}, "includedInDataCatalog": {"@type": "DataCatalog", "name": "data.example"}, "distribution": [{"@type": "DataDownload", "encodingFormat": "CSV", "contentUrl": "https://data.example/s.csv"}], "temporalCoverage": "1950-01-01/2013-12-18", "spatialCoverage": {"@type": "Place", "geo": {"@type": "GeoShape", "box": "18.0 -65.0 72.0 172.0"}}, "variableMeasured": ["wind", {"@type": "PropertyValue", "name": "gust", "unitText": "m/s"}], "measurementTechnique": "Anemometer", "hasPart": [{"@type": "Dataset", "name": "Part", "description": "A part of the storms data, with all that was measured in one year.", "license": "https://creativecommons.org/publicdomain/zero/1.0/", "creator": {"@type": "Organization", "name": "Centre"}}]},
 {"@type": "CreativeWork", "name": "C", "encoding": {"@type": "MediaObject", "encodingFormat": "application/pdf", "contentSize": "2 MB"}, "copyrightYear": 2020, "copyrightHolder": {"@type": "Person", "name": "N"}, "accessMode": ["textual", "visual"], "accessModeSufficient": {"@type": "ItemList", "itemListElement": ["textual"]}, "accessibilityFeature": "largePrint/CSSEnabled", "accessibilityHazard": ["noFlashingHazard"], "version": "2", "temporal": "2010/2011", "educationalUse": "assignment", "typicalAgeRange": "7-"}]}""",
    ),
    jsonld_page(
        "health, law, vehicles and homes",
        """{"@context": "https://schema.org", "@graph": [
 {"@type": "Drug", "name": "Xyl", "nonProprietaryName": "xylon", "administrationRoute": "oral", "legalStatus": "prescription only", "prescriptionStatus": "https://schema.org/PrescriptionOnly", "isAvailableGenerically": "true", "code": {"@type": "MedicalCode", "code": "413.9", "codingSystem": "ICD-9"}, "dosageForm": "tablet", "activeIngredient": "xylon", "availableStrength": {"@type": "DrugStrength", "activeIngredient": "xylon", "strengthValue": 25, "strengthUnit": "mg"}},
 {"@type": "MedicalCondition", "name": "Cold", "associatedAnatomy": {"@type": "AnatomicalStructure", "name": "nose"}, "possibleTreatment": {"@type": "MedicalTherapy", "name": "rest"}, "signOrSymptom": [{"@type": "MedicalSymptom", "name": "cough"}], "relevantSpecialty": "https://schema.org/Otolaryngologic"},
 {"@type": ["Physician", "MedicalBusiness"], "name": "Dr N", "medicalSpecialty": ["https://schema.org/Dermatology", "Pediatric"], "isAcceptingNewPatients": true, "address": {"@type": "PostalAddress", "addressCountry": {"@type": "Country", "name": "AT"}}, "availableService": {"@type": "MedicalTest", "name": "Test"}},
 {"@type": "Legislation", "name": "Act", "legislationIdentifier": "2016 c. 5", "legislationDate": "2016-03-01", "legislationLegalForce": "https://schema.org/InForce", "legislationType": "Act", "jurisdiction": "UK", "inLanguage": "en"},
 {"@type": "Car", "name": "V", "vehicleIdentificationNumber": "1BXKE63M8SR034567", "mileageFromOdometer": {"@type": "QuantitativeValue", "value": 12000, "unitCode": "KMT"}, "vehicleEngine": {"@type": "EngineSpecification", "fuelType": "Diesel", "engineDisplacement": {"@type": "QuantitativeValue", "value": "1.9", "unitCode": "LTR"}}, "driveWheelConfiguration": "https://schema.org/FrontWheelDriveConfiguration", "vehicleTransmission": "Manual", "vehicleModelDate": "2012", "numberOfDoors": 5, "bodyType": "Hatchback", "itemCondition": "https://schema.org/UsedCondition", "steeringPosition": "https://schema.org/LeftHandDriving", "offers": {"@type": "Offer", "price": "9000", "priceCurrency": "EUR"}},
 {"@type": "Apartment", "name": "Flat", "numberOfRooms": 3, "floorSize": {"@type": "QuantitativeValue", "value": 80, "unitCode": "MTK"}, "occupancy": {"@type": "QuantitativeValue", "maxValue": 5, "unitCode": "C62"}, "petsAllowed": false, "amenityFeature": {"@type": "LocationFeatureSpecification", "name": "wifi", "value": true, "hoursAvailable": "Mo-Su"}, "numberOfBathroomsTotal": 2, "yearBuilt": 1950},
 {"@type": "Hotel", "name": "H", "starRating": {"@type": "Rating", "ratingValue": "4"}, "checkinTime": "15:00", "checkoutTime": "11:00:00+02:00", "containsPlace": {"@type": "HotelRoom", "bed": {"@type": "BedDetails", "numberOfBeds": 2, "typeOfBed": "Queen"}}, "makesOffer": {"@type": "Offer", "name": "Half", "priceSpecification": {"@type": "CompoundPriceSpecification", "priceComponent": {"@type": "UnitPriceSpecification", "price": "20.50", "priceCurrency": "EUR", "unitCode": "DAY", "valueAddedTaxIncluded": "true"}}}},
 {"@type": "FlightReservation", "reservationId": "RXJ34P", "reservationStatus": "https://schema.org/ReservationConfirmed", "underName": {"@type": "Person", "name": "Eva"}, "reservationFor": {"@type": "Flight", "flightNumber": "UA110", "provider": {"@type": "Airline", "name": "C", "iataCode": "CO", "boardingPolicy": "https://schema.org/ZoneBoardingPolicy"}, "departureAirport": {"@type": "Airport", "name": "SFO", "iataCode": "SFO"}, "departureTime": "2017-03-04T20:15:00-08:00", "arrivalAirport": {"@type": "Airport", "name": "JFK", "iataCode": "JFK"}, "arrivalTime": "2017-03-05T06:30:00-05:00"}},
 {"@type": "TVEpisode", "name": "E", "episodeNumber": "2", "partOfSeason": {"@type": "TVSeason", "seasonNumber": 1}, "partOfSeries": {"@type": "TVSeries", "name": "S"}, "releasedEvent": {"@type": "PublicationEvent", "startDate": "2013-09-22", "location": {"@type": "Country", "name": "US"}}},
 {"@type": "MusicAlbum", "name": "M", "byArtist": {"@type": "MusicGroup", "name": "G"}, "albumProductionType": "https://schema.org/StudioAlbum", "albumReleaseType": "https://schema.org/AlbumRelease", "track": {"@type": "ItemList", "numberOfItems": 1, "itemListElement": [{"@type": "ListItem", "position": 1, "item": {"@type": "MusicRecording", "name": "T", "duration": "PT4M45S", "isrcCode": "US1230000001"}}]}}]}""",
    ),
    turtle_page(
        "a catalogue in Turtle",
        """@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix vcard: <http://www.w3.org/2006/vcard/ns#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<#c> a dcat:Catalog ; dct:title "Open data"@en, "Offene Daten"@de ; dct:publisher <#p> ; dcat:dataset <#d> ; dct:language <http://id.loc.gov/vocabulary/iso639-1/en> ; foaf:homepage <https://data.example/> ; dcat:themeTaxonomy <#t> .
<#p> a foaf:Agent, foaf:Organization ; foaf:name "City" .
<#d> a dcat:Dataset ; dct:title "Trees" ; dct:issued "2024-01-01"^^xsd:date ; dct:modified "2024-02-01T10:00:00Z"^^xsd:dateTime ; dct:accrualPeriodicity <http://purl.org/cld/freq/annual> ; dct:temporal [ a dct:PeriodOfTime ; dcat:startDate "2020-01-01"^^xsd:date ; dcat:endDate "2023-12-31"^^xsd:date ] ; dcat:contactPoint [ a vcard:Organization ; vcard:fn "Desk" ; vcard:hasEmail <mailto:d@data.example> ] ; dcat:keyword "tree" ; dcat:theme <#green> ; dcat:distribution [ a dcat:Distribution ; dcat:accessURL <https://data.example/trees> ; dcat:downloadURL <https://data.example/trees.csv> ; dcat:mediaType <https://www.iana.org/assignments/media-types/text/csv> ; dcat:byteSize "5120"^^xsd:nonNegativeInteger ; dct:license <https://creativecommons.org/licenses/by/4.0/> ] .
<#t> a skos:ConceptScheme ; skos:prefLabel "Themes"@en . <#green> a skos:Concept ; skos:inScheme <#t> ; skos:prefLabel "Green"@en ; skos:altLabel "Nature"@en ; skos:notation "G1" ; skos:topConceptOf <#t> .""",
    ),
]

SLIPS: list[Slip] = [
    Slip("blog of a content system", '"headline":"Sourdough', '"headlin":"Sourdough', "schema-unknown-property"),
    Slip("blog of a content system", '"@type":"Article"', '"@type":"Artcle"', "schema-unknown-type"),
    Slip(
        "blog of a content system",
        '"datePublished":"2025-11-02T07:30:00+00:00",\n"dateModified"',
        '"datePublished":"November 2",\n"dateModified"',
        "bad-date",
    ),
    Slip("blog of a content system", '"commentCount":3', '"recipeYield":3', "schema-wrong-domain"),
    Slip(
        "blog of a content system",
        '"inLanguage":"en-US",\n"potentialAction"',
        '"inLanguage":"english",\n"potentialAction"',
        "bad-language",
    ),
    Slip(
        "blog of a content system",
        '"publisher":{"@id":"https://blog.example/#organization"},\n"image"',
        '"publisher":{"@id":"https://blog.example/sourdough/#breadcrumb"},\n"image"',
        "schema-wrong-value",
    ),
    Slip("shop theme in microdata", 'itemprop="brand"', 'itemprop="brnd"', "schema-unknown-property"),
    Slip("shop theme in microdata", 'content="24.00"', 'content="24,00 €"', "bad-price"),
    Slip("shop theme in microdata", 'content="EUR">\n  <link', 'content="Euro">\n  <link', "bad-currency"),
    Slip("shop theme in microdata", "http://schema.org/InStock", "http://schema.org/InStok", "schema-unknown-member"),
    Slip("shop theme in microdata", "4006381333931", "4006381333932", "bad-gtin"),
    Slip("shop theme in microdata", 'content="2027-01-01"', 'content="01/31/2027"', "bad-date"),
    Slip("shop theme in microdata", "4.7</span>", "47</span>", "rating-out-of-bounds"),
    Slip(
        "shop theme in microdata",
        "http://schema.org/OfferShippingDetails",
        "http://schema.org/OfferShipingDetails",
        "schema-unknown-type",
    ),
    Slip(
        "node of a content system in RDFa",
        'schema:dateCreated" content="2025-06-01T10:00:00+00:00',
        'schema:dateCreated" content="2025-13-01T10:00:00+00:00',
        "bad-date",
    ),
    Slip("node of a content system in RDFa", "schema:keywords", "schema:keyword", "schema-unknown-property"),
    Slip("node of a content system in RDFa", "foaf:Image", "foaf:Imagee", "vocabulary-unknown-type"),
    Slip(
        "node of a content system in RDFa",
        'property="schema:interactionCount"',
        'property="scheme:interactionCount"',
        "prefix-undeclared",
    ),
    Slip(
        "node of a content system in RDFa", 'typeof="schema:Comment"', 'typeof="schema:Commment"', "schema-unknown-type"
    ),
    Slip("RDFa lite with vocab", 'typeof="LocalBusiness"', 'typeof="LocalBuisness"', "schema-unknown-type"),
    Slip("RDFa lite with vocab", 'property="openingHours"', 'property="openinghours"', "schema-unknown-property"),
    Slip("RDFa lite with vocab", "https://schema.org/Saturday", "https://schema.org/Satday", "schema-unknown-member"),
    Slip("RDFa lite with vocab", 'content="51.5"', 'content="511.5"', "bad-coordinate"),
    Slip("RDFa lite with vocab", 'property="priceRange"', 'property="price"', "schema-wrong-domain"),
    Slip("RDFa lite with vocab", ">GB</span>", ">UK</span>", "bad-country"),
    Slip("context as an object with vocab", '"endDate": "2026-06-02"', '"endDate": "2026-05-02"', "date-order"),
    Slip("context as an object with vocab", '/EventScheduled"', '/EventSheduled"', "schema-unknown-member"),
    Slip("context as an object with vocab", '"ex:stand"', '"exx:stand"', "prefix-undeclared"),
    Slip(
        "context as a list with a base and language",
        '"TouristAttraction"]',
        '"TouristAtraction"]',
        "schema-unknown-type",
    ),
    Slip(
        "context as a list with a base and language",
        '"smokingAllowed": "false"',
        '"smokingAllowed": "outside"',
        "schema-wrong-value",
    ),
    Slip("http with trailing slash and several top items", '"opens": "08:00"', '"opens": "8 am"', "bad-date"),
    Slip(
        "http with trailing slash and several top items",
        '"foundingDate": "1987-03"',
        '"foundingDate": "spring of 1987"',
        "bad-date",
    ),
    Slip(
        "http with trailing slash and several top items",
        '"alternateName": ["The',
        '"alternativeName": ["The',
        "schema-unknown-property",
    ),
    Slip(
        "language maps and values with a language",
        '"isbn": "978-3-16-148410-0"',
        '"isbn": "978-3-16-148410-1"',
        "bad-isbn",
    ),
    Slip("language maps and values with a language", '"bookEdition"', '"bookedition"', "schema-unknown-property"),
    Slip("recipe of a plug-in", '"cookTime":"PT40M"', '"cookTime":"40 minutes"', "bad-duration"),
    Slip("recipe of a plug-in", '"HowToTip"', '"HowToTipp"', "schema-unknown-type"),
    Slip("job with ranges", '"validThrough": "2026-03-18T00:00"', '"validThrough": "2025-03-18T00:00"', "date-order"),
    Slip("job with ranges", '"currency": "GBP"', '"currency": "Pounds"', "bad-currency"),
    Slip("job with ranges", '"jobBenefits"', '"jobBenifits"', "schema-unknown-property"),
    Slip("job with ranges", '"title": "Weaver"', '"jobTitle": "Weaver"', "schema-wrong-domain"),
    Slip(
        "product with property values, variants and shipping",
        "StrikethroughPrice",
        "StrikethrougPrice",
        "schema-unknown-member",
    ),
    Slip(
        "product with property values, variants and shipping",
        '"merchantReturnDays": 60',
        '"merchantReturnDays": "sixty"',
        "schema-wrong-value",
    ),
    Slip(
        "product with property values, variants and shipping", '"hasVariant"', '"hasVarient"', "schema-unknown-property"
    ),
    Slip("items joined by itemref", 'datetime="1960-02-29"', 'datetime="1961-02-29"', "bad-date"),
    Slip("items joined by itemref", 'datetime="PT1H47M"', 'datetime="107 min"', "bad-duration"),
    Slip("items joined by itemref", 'itemprop="director"', 'itemprop="director_"', "schema-unknown-property"),
    Slip("items joined by itemref", 'itemprop="genre"', 'itemprop="sku"', "schema-wrong-domain"),
    Slip(
        "forum posting with interaction counters",
        'itemprop="upvoteCount"',
        'itemprop="upVotes"',
        "schema-unknown-property",
    ),
    Slip(
        "course, questions and a claim",
        '"byDay": "https://schema.org/Monday"',
        '"byDay": "https://schema.org/Moonday"',
        "schema-unknown-member",
    ),
    Slip("course, questions and a claim", '"ratingValue": 1', '"ratingValue": 9', "rating-out-of-bounds"),
    Slip("video, podcast, software, dataset", '"email": "help@data.example"', '"email": "help at data"', "bad-email"),
    Slip("video, podcast, software, dataset", '"distribution"', '"distributions"', "schema-unknown-property"),
    Slip("video, podcast, software, dataset", '"timeRequired": "PT37M"', '"timeRequired": "37 min"', "bad-duration"),
    Slip("health, law, vehicles and homes", "FrontWheelDriveConfiguration", "FrontWheelDrive", "schema-unknown-member"),
    Slip(
        "health, law, vehicles and homes",
        '"arrivalTime": "2017-03-05T06:30:00-05:00"',
        '"arrivalTime": "tomorrow"',
        "bad-date",
    ),
    Slip("health, law, vehicles and homes", '"seasonNumber"', '"seasonNo"', "schema-unknown-property"),
    Slip("a catalogue in Turtle", "dcat:accessURL", "dcat:accesURL", "vocabulary-unknown-property"),
    Slip("a catalogue in Turtle", '"2024-01-01"^^xsd:date', '"2024-01-41"^^xsd:date', "bad-date"),
    Slip("a catalogue in Turtle", "skos:ConceptScheme", "skos:ConceptSchema", "vocabulary-unknown-type"),
]
