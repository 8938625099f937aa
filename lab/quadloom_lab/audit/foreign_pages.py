"""Correct documents that use the vocabularies in unusual but allowed ways: none of them has a defect."""
# ruff: noqa: E501

from __future__ import annotations

from typing import NamedTuple


class ForeignPage(NamedTuple):
    name: str
    content_type: str
    text: str


def jsonld_page(name: str, data: str) -> ForeignPage:
    return ForeignPage(
        name,
        "text/html",
        f'<!doctype html><title>{name}</title><body><script type="application/ld+json">\n{data}\n</script>',
    )


def html_page(name: str, body: str) -> ForeignPage:
    return ForeignPage(
        name, "text/html", f"<!doctype html><html lang=en><head><title>{name}</title></head><body>{body}</body></html>"
    )


def turtle_page(name: str, text: str) -> ForeignPage:
    return ForeignPage(name, "text/turtle", text)


PAGES: list[ForeignPage] = [
    jsonld_page("graph with references", """{"@context": "https://schema.org", "@graph": [
 {"@type": "Organization", "@id": "https://bakery.example/#org", "name": "Bakery", "url": "https://bakery.example/",
  "logo": {"@type": "ImageObject", "@id": "https://bakery.example/#logo", "url": "https://bakery.example/logo.png", "width": 600, "height": 60, "caption": "Bakery"},
  "image": {"@id": "https://bakery.example/#logo"}, "sameAs": ["https://social.example/bakery", "https://video.example/bakery"]},
 {"@type": "WebSite", "@id": "https://bakery.example/#site", "url": "https://bakery.example/", "name": "Bakery", "publisher": {"@id": "https://bakery.example/#org"},
  "potentialAction": [{"@type": "SearchAction", "target": {"@type": "EntryPoint", "urlTemplate": "https://bakery.example/?s={search_term_string}"},
   "query-input": {"@type": "PropertyValueSpecification", "valueRequired": true, "valueName": "search_term_string"}}], "inLanguage": "en-GB"},
 {"@type": ["WebPage", "AboutPage"], "@id": "https://bakery.example/about/", "url": "https://bakery.example/about/", "isPartOf": {"@id": "https://bakery.example/#site"},
  "datePublished": "2024-02-01T09:00:00+00:00", "dateModified": "2025-03-04T10:11:12+00:00", "breadcrumb": {"@id": "https://bakery.example/about/#crumbs"},
  "primaryImageOfPage": {"@id": "https://bakery.example/#logo"}, "potentialAction": [{"@type": "ReadAction", "target": ["https://bakery.example/about/"]}]},
 {"@type": "BreadcrumbList", "@id": "https://bakery.example/about/#crumbs", "itemListElement": [{"@type": "ListItem", "position": 1, "name": "Home", "item": "https://bakery.example/"}, {"@type": "ListItem", "position": 2, "name": "About"}]}]}"""),
    jsonld_page("article whose url is a typed page", """{"@context": "https://schema.org", "@graph": [
 {"@type": "WebPage", "@id": "https://news.example/a", "url": "https://news.example/a"},
 {"@type": "NewsArticle", "headline": "Bridge opened", "url": "https://news.example/a", "mainEntityOfPage": "https://news.example/a", "author": {"@type": "Person", "name": "A. Writer", "url": "https://news.example/a"},
  "image": ["https://news.example/1.jpg"], "datePublished": "2026-01-05", "dateModified": "2026-01-06", "isAccessibleForFree": false,
  "hasPart": {"@type": "WebPageElement", "isAccessibleForFree": false, "cssSelector": ".paid"}, "articleBody": "Text.", "wordCount": 120, "publisher": {"@type": "NewsMediaOrganization", "name": "News"}}]}"""),
    jsonld_page("roles", """{"@context": "http://schema.org/", "@type": "SportsTeam", "name": "Forty", "member": {"@type": "OrganizationRole",
 "member": {"@type": "Person", "name": "Joe"}, "startDate": "1979", "endDate": "1992", "roleName": "Quarterback"}, "sport": "Football",
 "coach": {"@type": "Role", "coach": {"@type": "Person", "name": "Ann"}, "startDate": "1980"}}"""),
    jsonld_page("reverse", """{"@context": "https://schema.org", "@type": "Person", "name": "Vera", "@reverse": {"author": {"@type": "Book", "name": "Weaving", "author": {"@type": "Person", "name": "Other"}},
 "spouse": {"@type": "Person", "name": "Karl"}}}"""),
    jsonld_page("enumerations as plain names and as http", """{"@context": "https://schema.org", "@type": "Product", "name": "Chair", "image": "https://shop.example/chair.jpg", "offers": [
 {"@type": "Offer", "price": 49, "priceCurrency": "EUR", "availability": "InStock", "itemCondition": "NewCondition", "businessFunction": "http://purl.org/goodrelations/v1#Sell"},
 {"@type": "Offer", "price": "50.10", "priceCurrency": "EUR", "availability": "http://schema.org/PreOrder", "itemCondition": "http://schema.org/UsedCondition", "businessFunction": "http://purl.org/goodrelations/v1#LeaseOut",
  "acceptedPaymentMethod": ["http://purl.org/goodrelations/v1#VISA", "https://schema.org/ByBankTransferInAdvance"], "availableDeliveryMethod": "http://purl.org/goodrelations/v1#DeliveryModePickUp", "eligibleCustomerType": "http://purl.org/goodrelations/v1#Enduser"}],
 "hasMerchantReturnPolicy": {"@type": "MerchantReturnPolicy", "applicableCountry": "CH", "returnPolicyCategory": "https://schema.org/MerchantReturnFiniteReturnWindow", "merchantReturnDays": 60, "returnMethod": "https://schema.org/ReturnByMail", "returnFees": "https://schema.org/FreeReturn"},
 "aggregateRating": {"@type": "AggregateRating", "ratingValue": 88, "bestRating": 100, "ratingCount": 20}}"""),
    jsonld_page("shipping and units", """{"@context": "https://schema.org/", "@type": "Product", "name": "Trenchcoat", "sku": "1", "offers": {"@type": "Offer", "price": "39.99", "priceCurrency": "USD", "priceValidUntil": "2027-11-20",
 "shippingDetails": {"@type": "OfferShippingDetails", "shippingRate": {"@type": "MonetaryAmount", "value": 3.49, "currency": "USD"}, "shippingDestination": {"@type": "DefinedRegion", "addressCountry": "US", "addressRegion": ["NY"]},
  "deliveryTime": {"@type": "ShippingDeliveryTime", "handlingTime": {"@type": "QuantitativeValue", "minValue": 0, "maxValue": 1, "unitCode": "DAY"}, "transitTime": {"@type": "QuantitativeValue", "minValue": 1, "maxValue": 5, "unitCode": "DAY"}, "cutoffTime": "14:30:00Z",
   "businessDays": {"@type": "OpeningHoursSpecification", "dayOfWeek": ["https://schema.org/Monday", "Tuesday"]}}}, "priceSpecification": {"@type": "UnitPriceSpecification", "price": 4.5, "priceCurrency": "EUR", "referenceQuantity": {"@type": "QuantitativeValue", "value": "1", "unitCode": "LTR"}}},
 "weight": {"@type": "QuantitativeValue", "value": 1.5, "unitCode": "KGM"}, "size": {"@type": "SizeSpecification", "name": "M", "sizeGroup": "https://schema.org/WearableSizeGroupRegular"}, "isVariantOf": {"@type": "ProductGroup", "productGroupID": "44", "variesBy": ["https://schema.org/size", "https://schema.org/color"]}}"""),
    jsonld_page("other contexts beside schema.org", """{"@context": ["https://schema.org/", {"gs1": "https://gs1.org/voc/", "ex": "https://ns.example/terms#"}], "@type": ["Product", "ex:Gadget"], "name": "Gadget", "gs1:netContent": "3", "ex:battery": "AA", "color": "red"}"""),
    jsonld_page("prefixed terms", """{"@context": {"schema": "http://schema.org/", "xsd": "http://www.w3.org/2001/XMLSchema#"}, "@id": "https://museum.example/id/7", "@type": "schema:Painting",
 "schema:name": {"@value": "Evening", "@language": "en"}, "schema:dateCreated": {"@value": "1888-09", "@type": "xsd:gYearMonth"}, "schema:creator": {"@type": "schema:Person", "schema:name": "A. Painter"}}"""),
    jsonld_page("aliases and vocab", """{"@context": {"@vocab": "https://schema.org/", "id": "@id", "type": "@type", "label": "name"}, "type": "City", "id": "https://geo.example/7", "label": "Town", "containedInPlace": {"type": "Country", "label": "Land"},
 "geo": {"type": "GeoCoordinates", "latitude": 47.4, "longitude": 8.5, "elevation": 408}}"""),
    jsonld_page("an empty context afterwards", """[{"@context": "https://schema.org", "@type": "Person", "name": "A"}, {"@context": "http://schema.org", "@type": "Person", "name": "B", "knowsLanguage": ["en", {"@type": "Language", "name": "Spanish", "alternateName": "es"}], "gender": "https://schema.org/Female", "height": "1.80 m"}]"""),
    jsonld_page("actions with inputs and outputs", """{"@context": "https://schema.org", "@type": "Movie", "name": "Film", "potentialAction": {"@type": "ReviewAction", "target": {"@type": "EntryPoint", "urlTemplate": "https://api.example/review?id=3", "encodingType": "application/ld+json", "contentType": "application/ld+json", "httpMethod": "POST",
 "actionPlatform": ["http://schema.org/DesktopWebPlatform", "http://schema.org/IOSPlatform"]}, "result": {"@type": "Review", "url-output": "required", "reviewBody-input": "required", "reviewRating": {"@type": "Rating", "ratingValue-input": "required"}}}}"""),
    jsonld_page("event forms", """{"@context": "https://schema.org", "@type": "MusicEvent", "name": "Concert", "startDate": "2026-07-21T19:00-05:00", "endDate": "2026-07-21T23:00-05:00", "doorTime": "2026-07-21T18:30", "eventStatus": ["https://schema.org/EventRescheduled", "https://schema.org/EventMovedOnline"], "previousStartDate": "2026-03-21",
 "eventAttendanceMode": "MixedEventAttendanceMode", "location": [{"@type": "VirtualLocation", "url": "https://stream.example/x"}, {"@type": "Place", "name": "Hall", "address": {"@type": "PostalAddress", "addressCountry": {"@type": "Country", "name": "US"}}}],
 "performer": {"@type": "PerformingGroup", "name": "Band"}, "organizer": {"@type": "Organization", "name": "Club", "url": "https://club.example"}, "maximumAttendeeCapacity": 500, "eventSchedule": {"@type": "Schedule", "startDate": "2026-07-01", "endDate": "2026-08-01", "repeatFrequency": "P1W", "byDay": ["https://schema.org/Monday"], "startTime": "10:00:00", "endTime": "11:00:00", "scheduleTimezone": "Europe/Amsterdam"}}"""),
    jsonld_page("opening hours and places", """{"@context": "https://schema.org", "@type": ["Dentist", "MedicalClinic"], "name": "Clinic", "address": "Main street 1", "telephone": "+31 20 1234567", "openingHours": ["Mo-Fr 08:00-17:00", "Sa 10:00-12:00"], "specialOpeningHoursSpecification": {"@type": "OpeningHoursSpecification", "opens": "00:00", "closes": "00:00", "validFrom": "2026-12-24", "validThrough": "2026-12-26"},
 "geo": {"@type": "GeoShape", "polygon": "1 2 3 4 5 6 1 2"}, "hasMap": "https://maps.example/7", "medicalSpecialty": ["https://schema.org/Dentistry", "PlasticSurgery"], "isAcceptingNewPatients": true, "paymentAccepted": "Cash", "currenciesAccepted": "EUR, USD", "areaServed": {"@type": "GeoCircle", "geoMidpoint": {"@type": "GeoCoordinates", "latitude": 1, "longitude": 2}, "geoRadius": "5000"}}"""),
    jsonld_page("how-to and recipe", """{"@context": "https://schema.org", "@type": "Recipe", "name": "Soup", "image": ["https://soup.example/1.jpg"], "author": {"@type": "Person", "name": "Cook"}, "prepTime": "PT20M", "totalTime": "P0DT1H", "recipeYield": ["4", "4 servings"], "recipeIngredient": ["1 onion", "2 carrots"], "keywords": "soup, winter", "nutrition": {"@type": "NutritionInformation", "calories": "270 calories", "servingSize": "1 bowl"},
 "recipeInstructions": [{"@type": "HowToSection", "name": "Base", "itemListElement": [{"@type": "HowToStep", "text": "Cut."}, {"@type": "HowToStep", "text": "Cook.", "itemListElement": [{"@type": "HowToDirection", "text": "Slowly."}, {"@type": "HowToTip", "text": "Stir."}]}]}], "suitableForDiet": "https://schema.org/VeganDiet", "video": {"@type": "VideoObject", "name": "Soup", "thumbnailUrl": "https://soup.example/t.jpg", "uploadDate": "2026-02-05T08:00:00+08:00", "duration": "PT1M33S", "contentUrl": "https://soup.example/v.mp4", "interactionStatistic": {"@type": "InteractionCounter", "interactionType": {"@type": "WatchAction"}, "userInteractionCount": 5647}}}"""),
    jsonld_page("dataset with DCAT neighbours", """{"@context": ["https://schema.org", {"dcat": "http://www.w3.org/ns/dcat#", "dct": "http://purl.org/dc/terms/"}], "@type": ["Dataset", "dcat:Dataset"], "name": "Rivers", "description": "Levels of all rivers in the country since 1900, by hour, with the station.", "license": "https://creativecommons.org/licenses/by/4.0/", "temporalCoverage": "1900-01-01/..", "spatialCoverage": "Rhine",
 "dcat:keyword": "water", "dct:issued": "2020-01-01", "distribution": [{"@type": ["DataDownload", "dcat:Distribution"], "encodingFormat": "text/csv", "contentUrl": "https://data.example/r.csv", "dcat:mediaType": "text/csv"}], "variableMeasured": ["level", {"@type": "PropertyValue", "name": "flow", "unitCode": "MQS"}], "measurementTechnique": "gauge", "creator": {"@type": "Organization", "name": "Office", "sameAs": "https://ror.example/1"}, "identifier": ["https://doi.org/10.1/x", {"@type": "PropertyValue", "propertyID": "DOI", "value": "10.1/x"}], "isAccessibleForFree": true, "includedInDataCatalog": {"@type": "DataCatalog", "name": "Portal"}}"""),
    jsonld_page("job", """{"@context": "https://schema.org/", "@type": "JobPosting", "title": "Baker", "description": "<p>Night work</p>", "identifier": {"@type": "PropertyValue", "name": "B", "value": "77"}, "datePosted": "2026-01-18", "validThrough": "2026-03-18T00:00", "employmentType": ["FULL_TIME", "CONTRACTOR"], "hiringOrganization": {"@type": "Organization", "name": "B"}, "jobLocation": {"@type": "Place", "address": {"@type": "PostalAddress", "addressCountry": "US", "postalCode": "48201"}},
 "applicantLocationRequirements": {"@type": "Country", "name": "USA"}, "jobLocationType": "TELECOMMUTE", "baseSalary": {"@type": "MonetaryAmount", "currency": "USD", "value": {"@type": "QuantitativeValue", "value": 40.00, "unitText": "HOUR"}}, "directApply": true, "experienceRequirements": {"@type": "OccupationalExperienceRequirements", "monthsOfExperience": 24}, "educationRequirements": {"@type": "EducationalOccupationalCredential", "credentialCategory": "bachelor degree"}, "experienceInPlaceOfEducation": true}"""),
    jsonld_page("learning and claims", """{"@context": "https://schema.org", "@graph": [{"@type": "ClaimReview", "url": "https://facts.example/1", "claimReviewed": "The moon is cheese", "itemReviewed": {"@type": "Claim", "appearance": {"@type": "CreativeWork", "url": "https://x.example/1"}, "author": {"@type": "Person", "name": "A"}}, "author": {"@type": "Organization", "name": "Facts"}, "reviewRating": {"@type": "Rating", "ratingValue": 1, "bestRating": 5, "worstRating": 1, "alternateName": "False"}},
 {"@type": "Quiz", "about": {"@type": "Thing", "name": "Cells"}, "educationalAlignment": [{"@type": "AlignmentObject", "alignmentType": "educationalSubject", "targetName": "Biology"}], "hasPart": [{"@type": "Question", "eduQuestionType": "Flashcard", "text": "What?", "acceptedAnswer": {"@type": "Answer", "text": "That."}}]},
 {"@type": "Course", "name": "C", "description": "D.", "provider": {"@type": "Organization", "name": "P"}, "offers": [{"@type": "Offer", "category": "Paid", "priceCurrency": "EUR", "price": 10.99}], "hasCourseInstance": [{"@type": "CourseInstance", "courseMode": "Online", "courseSchedule": {"@type": "Schedule", "duration": "PT3H", "repeatFrequency": "Daily", "repeatCount": 31}}]}]}"""),
    html_page("microdata with several types, references and reversal", """
<div itemscope itemtype="http://schema.org/Book http://schema.org/Product" itemid="urn:isbn:978-0-306-40615-7" itemref="more">
 <span itemprop="name">Weaving</span><meta itemprop="isbn" content="9780306406157"><link itemprop="bookFormat" href="http://schema.org/Hardcover">
 <div itemprop="offers" itemscope itemtype="http://schema.org/Offer"><span itemprop="price" content="1000.00">1,000.00</span><meta itemprop="priceCurrency" content="USD"><link itemprop="availability" href="http://schema.org/InStock"></div>
 <div itemprop-reverse="about" itemscope itemtype="http://schema.org/Review"><span itemprop="reviewBody">Good</span></div>
 <time itemprop="datePublished" datetime="2001-05">May 2001</time></div><p id=more><span itemprop="color">red</span> <span itemprop="http://schema.org/numberOfPages">300</span></p>"""),
    html_page("microdata of another vocabulary", """<div itemscope itemtype="https://ns.example/vocab#Widget"><span itemprop="nme">W</span><span itemprop="anything">1</span></div>
<div itemscope itemtype="http://microformats.org/profile/hcard"><span itemprop="fn">Jane</span></div>"""),
    html_page("RDFa with prefixes, vocab switches and roles", """
<div vocab="http://schema.org/" prefix="ov: http://open.vocab.org/terms/ gr: http://purl.org/goodrelations/v1#" typeof="Person" resource="#me"><span property="name">Jane</span> <a property="ov:preferredAnimal" href="http://zoo.example/cat">cat</a>
 <div property="alumniOf" typeof="OrganizationRole"><div property="alumniOf" typeof="CollegeOrUniversity"><span property="name">University</span></div><span property="startDate">1979</span></div>
 <div vocab="http://xmlns.com/foaf/0.1/" typeof="Person"><span property="name">Joe</span> <a rel="knows" href="#me">Jane</a> <a property="homepage" href="http://joe.example/">home</a> <a rel="mbox" href="mailto:joe@example.org">mail</a></div></div>
<div typeof="schema:Event foaf:Document" about="#e"><span property="schema:name dc:title">Fair</span><time property="schema:startDate" datetime="2026-05-12">then</time></div>
<div prefix="gr: http://purl.org/goodrelations/v1#" typeof="gr:Offering" about="#o"><span property="gr:name">Drill</span> <span rel="gr:hasPriceSpecification"><span typeof="gr:UnitPriceSpecification"><span property="gr:hasCurrency" content="EUR">€</span><span property="gr:hasCurrencyValue" datatype="xsd:float">99.00</span></span></span><a rel="gr:hasBusinessFunction" href="http://purl.org/goodrelations/v1#Sell">sell</a></div>
<p about="" property="dc:creator">Jane</p><link rel="license" href="https://creativecommons.org/licenses/by/4.0/"><a rel="cc:license" href="https://creativecommons.org/licenses/by/4.0/">cc</a>"""),
    ForeignPage(
        "open graph", "text/html", """<!doctype html><html prefix="og: http://ogp.me/ns# article: http://ogp.me/ns/article# fb: http://ogp.me/ns/fb#"><head><title>t</title>
<meta property="og:title" content="T"><meta property="og:type" content="article"><meta property="og:url" content="https://og.example/1"><meta property="og:image" content="https://og.example/1.jpg"><meta property="og:image:width" content="1200"><meta property="og:image:alt" content="x"><meta property="og:locale" content="en_GB"><meta property="og:locale:alternate" content="fr_FR"><meta property="og:site_name" content="S"><meta property="og:description" content="d">
<meta property="article:published_time" content="2026-01-05T08:00:00+00:00"><meta property="article:author" content="https://og.example/a"><meta property="article:section" content="News"><meta property="article:tag" content="x"><meta property="fb:app_id" content="1"><meta name="twitter:card" content="summary"><meta property="og:updated_time" content="2026-01-05"><meta property="og:video:secure_url" content="https://og.example/v"><meta property="product:price:amount" content="10"><meta property="product:price:currency" content="EUR"></head><body>x</body></html>"""),
    turtle_page("DCAT catalogue", """@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix vcard: <http://www.w3.org/2006/vcard/ns#> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix adms: <http://www.w3.org/ns/adms#> .
<https://data.example/catalog> a dcat:Catalog ; dct:title "Data"@en ; dct:publisher <https://data.example/office> ; dct:issued "2020-05-01"^^xsd:date ; dct:language <http://id.loc.gov/vocabulary/iso639-1/en> ; dcat:dataset <https://data.example/rivers> ; dcat:themeTaxonomy <https://data.example/themes> ; foaf:homepage <https://data.example/> .
<https://data.example/office> a foaf:Agent, foaf:Organization ; foaf:name "Office" ; foaf:mbox <mailto:office@data.example> .
<https://data.example/rivers> a dcat:Dataset ; dct:title "Rivers" ; dct:description "Levels" ; dcat:keyword "water", "level" ; dcat:theme <https://data.example/themes/water> ; dct:modified "2024-01-02T03:04:05Z"^^xsd:dateTime ; dct:accrualPeriodicity <http://purl.org/linked-data/sdmx/2009/code#freq-W> ; dct:temporal [ a dct:PeriodOfTime ; dcat:startDate "1900-01-01"^^xsd:date ; dcat:endDate "2024-01-01"^^xsd:date ] ; dct:spatial <http://geo.example/1> ; dcat:contactPoint [ a vcard:Organization ; vcard:fn "Office" ; vcard:hasEmail <mailto:o@data.example> ] ; dcat:distribution <https://data.example/rivers.csv> ; dct:license <https://creativecommons.org/licenses/by/4.0/> ; dcat:landingPage <https://data.example/rivers.html> ; dcat:temporalResolution "PT1H"^^xsd:duration ; adms:versionNotes "x" .
<https://data.example/rivers.csv> a dcat:Distribution ; dcat:accessURL <https://data.example/rivers.csv> ; dcat:downloadURL <https://data.example/rivers.csv> ; dcat:mediaType <https://www.iana.org/assignments/media-types/text/csv> ; dct:format "CSV" ; dcat:byteSize "5120"^^xsd:nonNegativeInteger .
<https://data.example/themes> a skos:ConceptScheme ; skos:prefLabel "Themes"@en ; skos:hasTopConcept <https://data.example/themes/water> .
<https://data.example/themes/water> a skos:Concept ; skos:inScheme <https://data.example/themes> ; skos:prefLabel "Water"@en, "Wasser"@de ; skos:altLabel "aqua" ; skos:broader <https://data.example/themes/nature> ; skos:exactMatch <http://eurovoc.example/1> ; skos:definition "H2O"@en ; skos:notation "W1" ; skos:topConceptOf <https://data.example/themes> .
<https://data.example/api> a dcat:DataService ; dcat:endpointURL <https://data.example/api> ; dcat:servesDataset <https://data.example/rivers> ; dct:title "API" .
"""),
    turtle_page("FOAF and friends", """@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix rel: <http://purl.org/vocab/relationship/> . @prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix cert: <http://www.w3.org/ns/auth/cert#> . @prefix dc: <http://purl.org/dc/elements/1.1/> . @prefix sioc: <http://rdfs.org/sioc/ns#> .
<https://jane.example/card> a foaf:PersonalProfileDocument ; foaf:primaryTopic <https://jane.example/card#me> ; foaf:maker <https://jane.example/card#me> ; dc:title "Card" ; dc:language "en" .
<https://jane.example/card#me> a foaf:Person ; foaf:name "Jane" ; foaf:givenName "Jane" ; foaf:family_name "Doe" ; foaf:nick "j" ; foaf:mbox_sha1sum "aa" ; foaf:homepage <https://jane.example/> ; foaf:knows <https://joe.example/#me>, [ a foaf:Person ; foaf:name "Ann" ] ; foaf:based_near [ a geo:Point ; geo:lat "47.4" ; geo:long "8.5" ] ; foaf:account [ a foaf:OnlineAccount, sioc:UserAccount ; foaf:accountName "j" ; foaf:accountServiceHomepage <https://social.example/> ] ; rdfs:seeAlso <https://jane.example/x.rdf> ; owl:sameAs <https://other.example/jane> ; foaf:depiction <https://jane.example/me.jpg> ; foaf:age "33" ; foaf:gender "female" ; foaf:interest <http://dbpedia.org/resource/Weaving> .
<https://jane.example/me.jpg> a foaf:Image ; foaf:depicts <https://jane.example/card#me> ; foaf:thumbnail <https://jane.example/t.jpg> .
"""),
]  # fmt: skip
